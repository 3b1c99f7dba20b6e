/* See swap_lines.h. The prices of waits: those of time, and an equal part of what is left up to `most`.
 *
 *   most  ─────────────────────────────
 *          ░░░ left, half of it each ░░
 *         ▒▒▒▒▒▒ LOADs ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
 *         ▓▓▓▓▓▓▓▓▓▓▓▓▓ SAVEs ▓▓▓▓▓▓▓▓▓
 *
 * Pieces of the two directions begin and end at different moments: with what faces a piece, its highest price is meant. */
#include <math.h>
#include <stdbool.h>

#include "plan_swap/lines.h"

/* The sum of the prices of one direction in one of its pieces. */
static double price_in(swap_line *const *lines, uint32_t n, const swap_axis *axis, bool same, uint32_t piece) {
    double sum = 0;
    for (uint32_t l = 0; l < n; l++)
        if ((lines[l]->axis == axis) == same) sum += lines[l]->price[piece];
    return sum;
}

/* The facing piece of the highest price. */
static uint32_t dearest_facing(swap_line *const *lines, uint32_t n, const swap_axis *axis, uint32_t piece) {
    uint32_t best = axis->first_facing[piece];
    double most = price_in(lines, n, axis, false, best);
    for (uint32_t i = best + 1; i <= axis->last_facing[piece]; i++) {
        double price = price_in(lines, n, axis, false, i);
        if (price > most) most = price, best = i;
    }
    return best;
}

/* Of all lines together. */
static double total_in(swap_line *const *lines, uint32_t n, const swap_axis *axis, uint32_t piece) {
    uint32_t facing = dearest_facing(lines, n, axis, piece);
    return price_in(lines, n, axis, true, piece) + price_in(lines, n, axis, false, facing);
}

/* All in the same proportion: what faces what has been lowered at least as much as that needs. */
static void lower_to_most(swap_line *const *lines, uint32_t n, double most) {
    for (uint32_t l = 0; l < n; l++)
        for (uint32_t i = 0; i + 1 < lines[l]->axis->n; i++) {
            double total = total_in(lines, n, lines[l]->axis, i);
            lines[l]->wait_price[i] = lines[l]->price[i] * (total > most ? most / total : 1);
        }
    for (uint32_t l = 0; l < n; l++)
        for (uint32_t i = 0; i + 1 < lines[l]->axis->n; i++) lines[l]->price[i] = lines[l]->wait_price[i];
}

/* A stack of the pieces before b, each dearer than all after it: the last that is dearer than some price is on it. */
static void find_last_dear(swap_line *l) {
    uint32_t pieces = l->axis->n - 1, *stack = l->last_dear + pieces, n = 0, last = 0;
    for (uint32_t b = 0; b < pieces; b++) {
        for (uint32_t i = n; i-- > 0 && stack[i] >= last;)
            if (l->price[stack[i]] > l->wait_price[b]) last = stack[i] + 1;
        l->last_dear[b] = last;
        while (n > 0 && l->price[stack[n - 1]] <= l->price[b]) n--;
        stack[n++] = b;
    }
}

void swap_lines_set_waits(swap_line *const *lines, uint32_t n, double most) {
    lower_to_most(lines, n, most);
    for (uint32_t l = 0; l < n; l++)
        for (uint32_t i = 0; i + 1 < lines[l]->axis->n; i++) {
            double left = fmax(0, most - total_in(lines, n, lines[l]->axis, i));
            lines[l]->wait_price[i] = lines[l]->price[i] + left / n;
        }
    for (uint32_t l = 0; l < n; l++) find_last_dear(lines[l]);
}

static double gain_piece(swap_line *const *lines, uint32_t n, const swap_line *line, uint32_t piece) {
    double part = line->waited[piece] / n;
    uint32_t facing = dearest_facing(lines, n, line->axis, piece);
    line->used[piece] += line->waited[piece];
    for (uint32_t l = 0; l < n; l++) lines[l]->used[lines[l]->axis == line->axis ? piece : facing] -= part;
    return part;
}

double swap_lines_gain_waits(swap_line *const *lines, uint32_t n, double most) {
    double gained = 0;
    for (uint32_t l = 0; l < n; l++)
        for (uint32_t i = 0; i + 1 < lines[l]->axis->n; i++)
            if (lines[l]->waited[i] > 0) gained += gain_piece(lines, n, lines[l], i);
    for (uint32_t l = 0; l < n; l++)
        for (uint32_t i = 0; i + 1 < lines[l]->axis->n; i++)
            if (lines[l]->wait_price[i] <= lines[l]->price[i] * (1 + 1e-9))
                gained += fmax(0, lines[l]->used[i]) * lines[l]->price[i] / most;
    return gained;
}
