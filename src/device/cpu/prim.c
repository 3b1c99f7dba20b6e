/* See prim.h. */
#include "device/cpu/prim.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define MAX_PORTS 4

/* One oneDNN primitive and the description of its scratchpad (NULL if it needs none). */
typedef struct stage {
    dnnl_primitive_desc_t pd;   /* until the primitive exists */
    dnnl_primitive_t primitive; /* NULL until it is realised */
    dnnl_memory_t scratchpad;
} stage;

/* One argument. Not staged: `stored` is NULL and `used` lies in the operand itself. */
typedef struct port {
    int arg;
    uint32_t operand;
    bool write;
    dnnl_memory_t used, stored;
    stage reorder;
    uint64_t stage_offset; /* in the workspace */
} port;

struct tide__prim {
    pthread_mutex_t lock; /* memory handles are set per run; two queues may run one kernel */
    dnnl_engine_t engine;
    stage main;
    uint32_t n_ports;
    port ports[MAX_PORTS];
    uint64_t scratchpad_bytes, workspace_bytes; /* the scratchpad lies first; stages share it */
};

/* ---- creation ---- */

static void stage_deinit(stage *s) {
    tide__pd_destroy(s->pd);
    dnnl_primitive_destroy(s->primitive);
    dnnl_memory_destroy(s->scratchpad);
}

void tide__prim_destroy(tide__prim *prim) {
    if (!prim) return;
    for (uint32_t i = 0; i < prim->n_ports; i++) {
        stage_deinit(&prim->ports[i].reorder);
        dnnl_memory_destroy(prim->ports[i].used);
        dnnl_memory_destroy(prim->ports[i].stored);
    }
    stage_deinit(&prim->main);
    pthread_mutex_destroy(&prim->lock);
    free(prim);
}

static tide_status new_memory(tide__prim *prim, tide__md md, dnnl_memory_t *out) {
    return tide__dnnl(dnnl_memory_create(out, md, prim->engine, DNNL_MEMORY_NONE), "describe memory");
}

static tide_status stage_init(tide__prim *prim, const_dnnl_primitive_desc_t pd, stage *out) {
    tide__md scratchpad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    uint64_t size = tide__md_bytes(scratchpad);
    TIDE_TRY(tide__dnnl(dnnl_primitive_desc_clone(&out->pd, pd), "describe a primitive"));
    if (size == 0) return TIDE_OK;
    prim->scratchpad_bytes = tide__max_u64(prim->scratchpad_bytes, size);
    return new_memory(prim, scratchpad, &out->scratchpad);
}

static tide_status stage_realise(stage *s) {
    if (!s->pd) return TIDE_OK;
    TIDE_TRY(tide__dnnl(dnnl_primitive_create(&s->primitive, s->pd), "create a primitive"));
    tide__pd_destroy(s->pd);
    s->pd = NULL;
    return TIDE_OK;
}

tide_status tide__prim_realise(tide__prim *prim) {
    TIDE_TRY(stage_realise(&prim->main));
    for (uint32_t i = 0; i < prim->n_ports; i++) TIDE_TRY(stage_realise(&prim->ports[i].reorder));
    return TIDE_OK;
}

static tide_status reorder_init(tide__prim *prim, tide__md from, tide__md to, stage *out) {
    dnnl_primitive_desc_t pd = NULL;
    TIDE_TRY(tide__reorder_pd_create(prim->engine, from, to, &pd));
    tide_status status = stage_init(prim, pd, out);
    tide__pd_destroy(pd);
    return status;
}

static tide_status port_init(tide__prim *prim, tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd,
                             const tide__bind *bind, port *p) {
    tide__md used = tide__pd_md(pd, bind->arg), stored = k->operands.data[bind->operand].md;
    if (bind->swapped) TIDE_TRY(tide__md_swapped(&k->mds, stored, &stored));
    *p = (port){.arg = bind->arg, .operand = bind->operand, .write = bind->operand >= k->n_reads};
    prim->n_ports++;
    TIDE_TRY(new_memory(prim, used, &p->used));
    /* oneDNN's inner product calls a 1 x 1 image a matrix: same bytes, fewer dimensions. */
    if (tide__md_look(used).n_dims != tide__md_look(stored).n_dims || tide__md_equal(used, stored)) return TIDE_OK;
    TIDE_TRY(new_memory(prim, stored, &p->stored));
    return p->write ? reorder_init(prim, used, stored, &p->reorder) : reorder_init(prim, stored, used, &p->reorder);
}

/* The scratchpad, then the staged operands, each on a cache line. */
static tide_status lay_out_workspace(tide__prim *prim, const_dnnl_primitive_desc_t pd) {
    uint64_t top = prim->scratchpad_bytes;
    for (uint32_t i = 0; i < prim->n_ports; i++) {
        port *p = &prim->ports[i];
        if (!p->stored) continue;
        uint64_t size = tide__md_bytes(tide__pd_md(pd, p->arg));
        if (!tide__align_up(top, TIDE__CPU_ALIGN, &p->stage_offset) || !tide__add(p->stage_offset, size, &top))
            return tide__fail(TIDE_E_OVERFLOW, "the workspace is too large");
    }
    prim->workspace_bytes = top;
    return TIDE_OK;
}

/* ---- running ---- */

static tide_status stage_run(const stage *s, dnnl_exec_arg_t *args, int n_args, void *workspace, dnnl_stream_t stream) {
    if (s->scratchpad) {
        TIDE_TRY(tide__dnnl(dnnl_memory_set_data_handle(s->scratchpad, workspace), "place a scratchpad"));
        args[n_args++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, s->scratchpad};
    }
    TIDE_TRY(tide__dnnl(dnnl_primitive_execute(s->primitive, stream, n_args, args), "run a primitive"));
    return tide__dnnl(dnnl_stream_wait(stream), "wait for a primitive");
}

static tide_status place_port(const port *p, const tide__call *call, char *workspace) {
    void *operand = tide__at(call, p->operand), *used = p->stored ? workspace + p->stage_offset : operand;
    if (p->stored) TIDE_TRY(tide__dnnl(dnnl_memory_set_data_handle(p->stored, operand), "place an operand"));
    return tide__dnnl(dnnl_memory_set_data_handle(p->used, used), "place an operand");
}

/* The reorders of the staged operands of one direction. */
static tide_status run_reorders(const tide__prim *prim, bool writes, char *workspace, dnnl_stream_t stream) {
    for (uint32_t i = 0; i < prim->n_ports; i++) {
        const port *p = &prim->ports[i];
        if (!p->stored || p->write != writes) continue;
        dnnl_exec_arg_t args[3] = {{DNNL_ARG_FROM, writes ? p->used : p->stored},
                                   {DNNL_ARG_TO, writes ? p->stored : p->used}};
        TIDE_TRY(stage_run(&p->reorder, args, 2, workspace, stream));
    }
    return TIDE_OK;
}

static tide_status run_locked(const tide__prim *prim, const tide__call *call, char *workspace) {
    dnnl_exec_arg_t args[MAX_PORTS + 1];
    for (uint32_t i = 0; i < prim->n_ports; i++) {
        TIDE_TRY(place_port(&prim->ports[i], call, workspace));
        args[i] = (dnnl_exec_arg_t){prim->ports[i].arg, prim->ports[i].used};
    }
    TIDE_TRY(run_reorders(prim, false, workspace, call->stream));
    TIDE_TRY(stage_run(&prim->main, args, (int)prim->n_ports, workspace, call->stream));
    return run_reorders(prim, true, workspace, call->stream);
}

tide_status tide__prim_run(const tide__cpu_kernel *k, const tide__call *call) {
    tide__prim *prim = call->variant ? k->alternatives[call->variant - 1].prim : k->prim;
    char *workspace = prim->workspace_bytes ? tide__at(call, (uint32_t)k->operands.count) : NULL;
    pthread_mutex_lock(&prim->lock);
    tide_status status = run_locked(prim, call, workspace);
    pthread_mutex_unlock(&prim->lock);
    return status;
}

/* *out is the kernel's from the first moment on, complete or not. */
static tide_status prim_init(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd, const tide__bind *binds,
                             uint32_t n_binds, tide__prim **out) {
    tide__prim *prim = *out = calloc(1, sizeof *prim);
    if (!prim) return tide__fail_memory();
    pthread_mutex_init(&prim->lock, NULL);
    if (n_binds > MAX_PORTS) return tide__fail(TIDE_E_INTERNAL, "a primitive with %u operands", n_binds);
    prim->engine = ((tide__cpu *)k->base.device)->engine;
    TIDE_TRY(stage_init(prim, pd, &prim->main));
    for (uint32_t i = 0; i < n_binds; i++) TIDE_TRY(port_init(prim, k, pd, &binds[i], &prim->ports[i]));
    return lay_out_workspace(prim, pd);
}

tide_status tide__prim_attach(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd, const tide__bind *binds,
                              uint32_t n_binds) {
    TIDE_TRY(prim_init(k, pd, binds, n_binds, &k->prim));
    k->workspace_bytes = k->prim->workspace_bytes;
    k->run = tide__prim_run;
    return tide__prim_realise(k->prim);
}

tide_status tide__prim_add_alternative(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd, const tide__bind *binds,
                                       uint32_t n_binds) {
    tide__alternative *a = &k->alternatives[k->n_alternatives++];
    TIDE_TRY(prim_init(k, pd, binds, n_binds, &a->prim));
    a->workspace_bytes = a->prim->workspace_bytes;
    return TIDE_OK;
}
