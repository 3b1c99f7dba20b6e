/* What a plan decided, found in its residencies; see tide_choice. */
#ifndef TIDE_REPORT_CHOICES_H
#define TIDE_REPORT_CHOICES_H

#include "report/report.h"

/* Fills r->choices and the fates of r->stays; the rest of the model is complete. */
tide_status tide__report_find_choices(tide_report *r);

#endif
