/* The figures of a report as JSON members: what the page shows outside its columns. */
#ifndef TIDE_REPORT_META_H
#define TIDE_REPORT_META_H

#include <stdio.h>

#include "report/report.h"

/* `"key":value,...` without the braces around; errors stay in the stream. */
tide_status tide__report_write_meta(const tide_report *r, FILE *f);

#endif
