/* Ranks of one process over a transport that hurts what passes: the n-th frame, or the n-th piece of data, that one rank
 * sends another is damaged, lost, doubled, late or swapped with the next, or nothing passes from then on. */
#ifndef TIDE_TESTS_FAULTY_TRANSPORT_H
#define TIDE_TESTS_FAULTY_TRANSPORT_H

#include "net/local.h"

typedef enum harm {
    HARM_NONE,
    HARM_DAMAGE, /* one bit of a frame */
    HARM_LOSE,
    HARM_DOUBLE,
    HARM_SWAP,
    HARM_DATA, /* one bit of a piece of data */
    HARM_CUT,  /* frames from and to the rank are lost from then on */
    N_HARMS
} harm;

/* What is harmed next, for all ranks of the process: set before they open. */
typedef struct harm_plan {
    harm harm;
    uint32_t rank;  /* the sender */
    uint32_t after; /* so many of its frames or pieces pass unharmed */
    uint32_t bit;   /* of the harmed bytes, modulo their number */
} harm_plan;
void plan_harm(const harm_plan *plan);
bool harm_done(void);
/* How many harms a test tries: TIDE_TEST_FAULTS, else n or a sanitizer's share of it. */
uint32_t harm_rounds(uint32_t n);

extern const tide__net_transport faulty_transport;

#endif
