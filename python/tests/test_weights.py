"""The command and the libraries that people have weights of: one forward pass over the same input agrees, by the weights of a file
that the library wrote; and what the command saves, the library loads with strict=True."""

import json
import os
import subprocess

import pytest
import torch

torchvision = pytest.importorskip("torchvision")
transformers = pytest.importorskip("transformers")
image = pytest.importorskip("PIL.Image")
safetensors = pytest.importorskip("safetensors.torch")

# The package's own command has no CPU device; `make check-torch` names one that has.
COMMAND = os.environ.get("TIDEMARK")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not COMMAND, reason="TIDEMARK=path of a tidemark with the CPU device"),
]

MEAN, DEVIATION = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
CLASSES = 10
TOLERANCE = 1e-4  # of logarithms of probabilities that spread over units

# The model here, there, and the size of its images.
PICTURES = [
    ("alexnet-owt", "alexnet", 224),
    *((name, name, 224) for name in ("vgg11", "vgg13", "vgg16", "vgg19")),
    *((name, name, 64) for name in ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")),
    *((name, name, 64) for name in ("densenet121", "densenet169", "densenet201")),
]
ROUND_TRIPS = ["alexnet-owt", "vgg11", "resnet18", "resnet50", "densenet121"]
GPT2 = "gpt2:2,64,4,32,300"


def tidemark(*arguments):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def predicted(choices):
    """Logarithms of probabilities, by class."""
    return torch.tensor([c["probability"] for c in sorted(choices, key=lambda c: c["class"])]).log()


def picture_model(name, size, pixels):
    """Random weights whose activations, statistics and scores are about one unit wide, as in a network that was trained."""
    model = getattr(torchvision.models, name)(num_classes=CLASSES)
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    blocks = [m for m in model.modules() if isinstance(m, torchvision.models.resnet.Bottleneck)]
    with torch.no_grad():
        for block in blocks:  # a hundred fresh layers would blow up every rounding; trained ones do not
            block.bn3.weight *= 0.2
        if norms:
            model.train()(torch.cat([pixels, torch.randn(3, 3, size, size)]))
        scores = model.eval()(pixels)
        last = [m for m in model.modules() if isinstance(m, torch.nn.Linear)][-1]
        last.weight /= scores.std()
        last.bias += torch.linspace(-1, 1, CLASSES)
    return model


def picture(folder, size):
    """A PNG file, and what it is to a network."""
    pixels = torch.randint(0, 256, (size, size, 3), dtype=torch.uint8)
    path = folder / "picture.png"
    image.fromarray(pixels.numpy()).save(path)
    return path, ((pixels / 255 - MEAN) / DEVIATION).permute(2, 0, 1)[None]


@pytest.mark.parametrize("ours, theirs, size", PICTURES)
def test_pictures(tmp_path, ours, theirs, size):
    path, pixels = picture(tmp_path, size)
    model = picture_model(theirs, size, pixels)
    weights = tmp_path / "weights.safetensors"
    safetensors.save_file(model.state_dict(), weights)
    shape = ["--input", f"3x{size}x{size}", "--classes", CLASSES, "--weights", weights]
    said = json.loads(tidemark("predict", ours, path, *shape, "--top", CLASSES, "--json"))
    with torch.no_grad():
        wanted = model(pixels)[0].log_softmax(0)
    assert wanted.max() - wanted.min() > 1
    torch.testing.assert_close(predicted(said["predictions"][0]["classes"]), wanted, rtol=0, atol=TOLERANCE)
    if ours not in ROUND_TRIPS:
        return
    saved = tmp_path / "saved.safetensors"
    still = ["--optimizer", "sgd", "--weight-decay", 0, "--learning-rate", 0]
    tidemark("train", ours, "--batch", 2, "--steps", 1, "--test-samples", 2, "--quiet", *shape, *still, "--save-weights", saved)
    other = getattr(torchvision.models, theirs)(num_classes=CLASSES)
    other.load_state_dict(safetensors.load_file(saved), strict=True)
    for (name, a), b in zip(model.named_parameters(), other.parameters()):
        assert torch.equal(a, b), name


def text_model():
    config = transformers.GPT2Config(n_layer=2, n_embd=64, n_head=4, n_positions=32, vocab_size=300)
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter) / parameter.shape[-1] ** 0.25
    return model


def test_gpt2(tmp_path):
    model = text_model()
    model.save_pretrained(tmp_path / "theirs")
    tokens = torch.randint(0, 300, (1, 20))
    ids = ",".join(map(str, tokens[0].tolist()))
    weights = tmp_path / "theirs" / "model.safetensors"
    said = json.loads(tidemark("predict", GPT2, "--weights", weights, "--ids", ids, "--tokens", 1, "--top", 300, "--json"))
    with torch.no_grad():
        wanted = model(tokens).logits[0, -1].log_softmax(0)
    assert wanted.max() - wanted.min() > 1
    torch.testing.assert_close(predicted(said["next"]), wanted, rtol=0, atol=TOLERANCE)

    ours = tmp_path / "ours"
    ours.mkdir()
    model.config.save_pretrained(ours)
    tidemark("train", GPT2, "--weights", weights, "--save-weights", ours / "model.safetensors", "--batch", 2, "--steps", 1,
             "--test-samples", 2, "--quiet", "--optimizer", "sgd", "--weight-decay", 0, "--learning-rate", 0)
    strict = transformers.GPT2LMHeadModel(model.config)
    strict.load_state_dict(safetensors.load_file(ours / "model.safetensors"), strict=True)
    for other in (strict, transformers.GPT2LMHeadModel.from_pretrained(ours)):
        for (name, a), b in zip(model.named_parameters(), other.parameters()):
            assert torch.equal(a, b), name


def test_checkpoint(tmp_path):
    """Optimizer state is under a prefix; without it a checkpoint is what the library wants."""
    checkpoint = tmp_path / "c.safetensors"
    tidemark("train", "resnet18", "--input", "3x64x64", "--batch", 2, "--steps", 2, "--test-samples", 2, "--quiet", "--checkpoint", checkpoint)
    arrays = safetensors.load_file(checkpoint)
    weights = {name: array for name, array in arrays.items() if not name.startswith("optimizer.")}
    assert len(weights) < len(arrays)
    torchvision.models.resnet18(num_classes=CLASSES).load_state_dict(weights, strict=True)
    assert weights["bn1.num_batches_tracked"] == 2
