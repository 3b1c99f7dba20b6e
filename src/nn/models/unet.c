/* U-Net (Ronneberger et al. 2015), in the common form with padded convolutions, so that what goes across needs no
 * cropping: pairs of 3 x 3 convolutions with bias and ReLU, four times down by max pooling and up by 2 x 2
 * up-convolutions, a class per pixel. Height and width are multiples of 16. The number is that of the channels at full
 * size (64 in the paper), doubled on each way down. */
#include "nn/model.h"

#define DEPTH 4
#define MAX_CHANNELS (UINT32_C(1) << 20)

static uint32_t conv_pair(tide__graph *g, uint32_t x, uint32_t channels) {
    const tide__conv conv = {.channels = channels, .kernel = 3, .stride = 1, .pad = 1, .bias = true};
    x = tide__graph_relu(g, "relu1", tide__graph_conv(g, "conv1", x, conv));
    return tide__graph_relu(g, "relu2", tide__graph_conv(g, "conv2", x, conv));
}

static uint32_t up(tide__graph *g, uint32_t x, uint32_t across, uint32_t channels) {
    uint32_t parts[2] = {across, tide__graph_upconv(g, "upconv", x, channels, 2)};
    return conv_pair(g, tide__graph_concat(g, "concat", parts, 2), channels);
}

void tide__build_unet(tide__graph *g, const tide__request *r) {
    uint32_t x = tide__graph_input(g, r->input), across[DEPTH], channels = r->numbers[0];
    if (channels > MAX_CHANNELS) {
        g->status = tide__fail(TIDE_E_ARGUMENT, "%u channels are more than %u", channels, MAX_CHANNELS);
        return;
    }
    for (uint32_t i = 0; i < DEPTH; i++) {
        tide__graph_prefix(g, "down%u.", i + 1);
        across[i] = conv_pair(g, x, channels << i);
        x = tide__graph_maxpool(g, "pool", across[i], (tide__pool){.kernel = 2, .stride = 2});
    }
    tide__graph_prefix(g, "bottom.");
    x = conv_pair(g, x, channels << DEPTH);
    for (uint32_t i = DEPTH; i-- > 0;) {
        tide__graph_prefix(g, "up%u.", i + 1);
        x = up(g, x, across[i], channels << i);
    }
    tide__graph_prefix(g, "%s", "");
    x = tide__graph_conv(g, "out", x, (tide__conv){.channels = r->classes, .kernel = 1, .stride = 1, .bias = true});
    tide__graph_pixel_loss(g, "loss", x);
}
