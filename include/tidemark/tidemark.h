/* Everything Tidemark offers. See the single headers for what they promise. */
#ifndef TIDEMARK_H
#define TIDEMARK_H

#include <tidemark/device.h>
#include <tidemark/file.h>
#include <tidemark/heap.h>
#include <tidemark/machine.h>
#include <tidemark/nearest.h>
#include <tidemark/net.h>
#include <tidemark/nn.h>
#include <tidemark/ops.h>
#include <tidemark/pictures.h>
#include <tidemark/place.h>
#include <tidemark/plan.h>
#include <tidemark/pool.h>
#include <tidemark/predict.h>
#include <tidemark/program.h>
#include <tidemark/replay.h>
#include <tidemark/report.h>
#include <tidemark/run.h>
#include <tidemark/session.h>
#include <tidemark/source.h>
#include <tidemark/status.h>
#include <tidemark/tokens.h>
#include <tidemark/train.h>

#endif
