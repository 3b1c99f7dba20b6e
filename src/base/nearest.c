/* See nearest.h. */
#include <tidemark/nearest.h>

#include <string.h>

enum { MOST_LETTERS = 48 };

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Edits from one word to the other, a swap of neighbours counting as one (Damerau); rows of the usual table, three of which
 * matter. Words are at most MOST_LETTERS long. */
static uint32_t edits(const char *a, size_t n, const char *b, size_t m) {
    uint32_t rows[3][MOST_LETTERS + 1];
    for (size_t k = 0; k <= m; k++) rows[0][k] = (uint32_t)k;
    for (size_t i = 1; i <= n; i++) {
        uint32_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        now[0] = (uint32_t)i;
        for (size_t k = 1; k <= m; k++) {
            now[k] = least(before[k - 1] + (a[i - 1] != b[k - 1]), least(before[k], now[k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                now[k] = least(now[k], earlier[k - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

tide_nearest tide_nearest_begin(const char *text, size_t length) {
    return (tide_nearest){.text = text, .length = length, .distance = (uint32_t)(length + 2) / 3 + 1};
}

void tide_nearest_offer(tide_nearest *nearest, const char *name, size_t length) {
    if (length > MOST_LETTERS || nearest->length > MOST_LETTERS) return;
    uint32_t distance = edits(nearest->text, nearest->length, name, length);
    if (distance >= nearest->distance) return;
    nearest->distance = distance;
    nearest->best = name;
    nearest->best_length = length;
}
