#!/bin/bash
# Data as people have it: folders of pictures for train and predict, MNIST as it is published (gzip), in a folder that is called
# by its bare name.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1
quick='--batch 8 --threads 1 --quiet'

# Two classes of pictures, bright at the top or at the bottom; and 40 images of idx whose label is their brightness.
python3 - <<'END' || exit 1
import gzip, os, struct, zlib

def png(path, width, height, pixel):
    rows = b"".join(b"\0" + bytes(v for x in range(width) for v in pixel(x, y)) for y in range(height))
    chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)))
        f.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

for name, top in (("bottom", False), ("top", True)):
    os.makedirs(f"photos/{name}")
    for i in range(20):
        png(f"photos/{name}/{i:02}.png", 30 + i, 34, lambda x, y: ((200 if (y < 17) == top else 20) + i,) * 3)

os.mkdir("mnist")
images = b"".join(bytes([20 * (i % 10)] * 784) for i in range(40))
for part, n in (("train", 30), ("t10k", 10)):
    with gzip.open(f"mnist/{part}-images-idx3-ubyte.gz", "wb") as f:
        f.write(struct.pack(">4BIII", 0, 0, 8, 3, n, 28, 28) + images[: 784 * n])
    with gzip.open(f"mnist/{part}-labels-idx1-ubyte.gz", "wb") as f:
        f.write(struct.pack(">4BI", 0, 0, 8, 1, n) + bytes(i % 10 for i in range(n)))
END

# shellcheck disable=SC2086 # $quick is a list of options
{
    run 0 train lenet --data photos $quick --steps 30 --no-augment --save-weights w --json
    [ "$(json_number accuracy)" = 1 ] || fail 'top and bottom are not told apart'
    run 0 predict lenet photos/top/03.png photos/bottom/11.png --weights w --classes 2 --top 1 --threads 1
    grep -q '^photos/top/03.png: 1 ' out && grep -q '^photos/bottom/11.png: 0 ' out || fail 'other classes'
    run 0 predict lenet --data photos --samples 4 --weights w --top 1 --threads 1
    grep -q '(is 0): 0 bottom ' out && grep -q '(is 1): 1 top ' out || fail 'no names of classes'
    run 0 train lenet --data photos $quick --steps 5 --budget 80% --effort low --verify-bits
    run 0 train lenet --data ./photos $quick --steps 5 --test-samples 100
    err_has '--test-samples: there are 4, which are all taken'
    run 0 train resnet-cifar:1 --data photos $quick --steps 1 --input 3x16x16 --test-samples 2
    refuse 2 '--no-augment is for folders of pictures' train lenet $quick --no-augment
    run 0 train lenet --data photos $quick --steps 4 --decode-threads 1 --json
    bits=$(grep '"bits"' out)
    run 0 train lenet --data photos $quick --steps 4 --decode-threads 5 --json
    [ "$bits" = "$(grep '"bits"' out)" ] || fail 'threads that decode change the bits'
    beside() { # threads that decode: MiB beside the arena
        refuse 2 'is too small: the process takes' train lenet --data photos $quick --decode-threads "$1" --total-budget 8MiB
        sed -n 's/.*the process takes \([0-9]*\)\..*/\1/p' "$work/err"
    }
    apart=$(($(beside 3) - $(beside 1)))
    [ "$apart" -ge 95 ] && [ "$apart" -le 98 ] || fail "two threads more take $apart MiB, not 96"
    echo 'no picture' >photos/top/00.png
    refuse 3 'photos/top/00.png: byte 0: neither a PNG nor a JPEG file' train lenet --data photos $quick --steps 30
    refuse 3 'photos/top/00.png' predict lenet photos/top/00.png --weights w --classes 2 --json
    refuse 6 'cannot open' predict lenet photos/nosuch.png --weights w --classes 2

    run 0 train lenet --data mnist $quick --steps 3 --json
    bits=$(grep "\"bits\"" out)
    gunzip mnist/*.gz
    run 0 train lenet --data mnist $quick --steps 3 --json
    [ "$bits" = "$(grep '"bits"' out)" ] || fail 'packed and unpacked files: other bits'
    refuse 2 'is not digits or grammar' train lenet --data mnits $quick
    gzip mnist/*
    run 0 train lenet --data mnist/train-images-idx3-ubyte.gz $quick --steps 1
    (gzip <<<the && yes 'quick brown fox' | head -c 4000 | gzip) >text.gz # two members
    run 0 train gpt2:1,16,2,16 --data ./text.gz $quick --steps 1
    echo more >>text.gz
    refuse 3 'gzip: something else follows' train gpt2:1,16,2,16 --data ./text.gz $quick
    TMPDIR=/nosuch refuse 6 'cannot create the gunzip file /nosuch/tidemark-gunzip-' train lenet --data mnist $quick
    head -c 100 mnist/train-labels-idx1-ubyte.gz >x && truncate -s -8 x && mv x mnist/train-labels-idx1-ubyte.gz
    refuse 3 'train-labels-idx1-ubyte.gz: byte' train lenet --data mnist $quick
}
finish
