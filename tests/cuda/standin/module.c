/* Modules and their kernels. A module is PTX as text; a cubin is refused as one for another GPU, so that programs go on to
 * their PTX. A kernel becomes C when it is asked for, and machine code when it is launched first: compiled by the
 * system's compiler into the cache folder, under a name made from its text, so that each kernel is compiled once. */
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "standin.h"

#define MODULE_TAG UINT64_C(0x0053000000000000)
#define FUNCTION_TAG UINT64_C(0x0054000000000000)

static struct {
    module **modules;
    function **functions;
    uint32_t n_modules, n_functions;
} table;

/* ---- loading ---- */

/* PTX 9.0 came with CUDA 13.0, 8.0 with 12.0; a minor version brings at most one of the other. */
static uint32_t newest_ptx(uint32_t version) { return (version / 1000 - 4) * 10 + version % 1000 / 10; }

static CUresult check_target(const ptx_module *m) {
    const settings *s = &the_standin.settings;
    if (m->version > newest_ptx(s->version)) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    return m->target > s->capability ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_SUCCESS;
}

static CUresult place_globals(context *c, module *m) {
    for (uint32_t i = 0; i < m->ptx.n_variables && i < 16; i++) {
        const ptx_variable *v = &m->ptx.variables[i];
        range *r = NULL;
        if (v->space != PTX_GLOBAL || v->size_bytes == 0) continue;
        const CUresult result = memory_alloc(c, v->size_bytes, &r);
        if (result != CUDA_SUCCESS) return result;
        if (v->values)
            memcpy(r->bytes, v->values, v->size_bytes);
        else
            memset(r->bytes, 0, v->size_bytes);
        m->globals[i] = r->base;
    }
    return CUDA_SUCCESS;
}

static void drop_globals(module *m) {
    for (uint32_t i = 0; i < 16; i++)
        if (m->globals[i]) memory_free(m->globals[i]);
    memset(m->globals, 0, sizeof m->globals);
}

CUresult module_load(context *c, const void *image, module **out) {
    static const unsigned char elf[] = {0x7f, 'E', 'L', 'F'}, fat[] = {0x50, 0xed, 0x55, 0xba};
    char error[PTX_ERROR_SIZE] = "";
    ptx_module ptx;
    if (!image) return misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "no image");
    if (memcmp(image, elf, 4) == 0 || memcmp(image, fat, 4) == 0) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (!ptx_parse(image, &ptx, error)) return misuse(MISUSE_IMAGE, CUDA_ERROR_INVALID_PTX, "%s", error);
    CUresult result = check_target(&ptx);
    if (result != CUDA_SUCCESS) {
        ptx_free(&ptx);
        return result;
    }
    module *m = calloc(1, sizeof *m);
    if (!m) abort();
    *m = (module){.handle = table.n_modules, .owner = {c, c->generation}, .ptx = ptx};
    table.modules = array_grow(table.modules, table.n_modules, sizeof m);
    table.modules[table.n_modules++] = m;
    result = place_globals(c, m);
    if (result != CUDA_SUCCESS) {
        drop_globals(m);
        m->unloaded = true;
        return result;
    }
    *out = m;
    return CUDA_SUCCESS;
}

CUresult module_unload(module *m) {
    for (uint32_t i = 0; i < MAX_STREAMS; i++)
        if (m->used.at[i] > the_standin.host.at[i])
            return misuse(MISUSE_BUSY_MODULE, CUDA_ERROR_INVALID_VALUE, "nothing says that its kernels are done");
    drop_globals(m);
    m->unloaded = true;
    return CUDA_SUCCESS;
}

void *module_handle(const module *m) { return (void *)(uintptr_t)(MODULE_TAG | (uint64_t)m->handle << 4); }

CUresult module_of(context *c, const void *handle, module **out) {
    const uint64_t bits = (uint64_t)(uintptr_t)handle, number = (bits & ~MODULE_TAG) >> 4;
    if ((bits & MODULE_TAG) != MODULE_TAG || number >= table.n_modules ||
        module_handle(table.modules[number]) != handle)
        return misuse(MISUSE_BAD_HANDLE, CUDA_ERROR_INVALID_HANDLE, "%p is no module", handle);
    module *m = table.modules[number];
    if (m->unloaded) return misuse(MISUSE_DESTROYED, CUDA_ERROR_INVALID_HANDLE, "the module was unloaded");
    if (!owner_is(m->owner, c))
        return misuse(MISUSE_WRONG_CONTEXT, CUDA_ERROR_INVALID_HANDLE, "a module of another context");
    *out = m;
    return CUDA_SUCCESS;
}

/* ---- kernels ---- */

static const ptx_kernel *kernel_named(const module *m, const char *name) {
    for (uint32_t i = 0; i < m->ptx.n_kernels; i++)
        if (strcmp(m->ptx.kernels[i].name, name) == 0) return &m->ptx.kernels[i];
    return NULL;
}

CUresult function_get(module *m, const char *name, function **out) {
    char error[PTX_ERROR_SIZE] = "";
    const ptx_kernel *k = kernel_named(m, name);
    if (!k) return CUDA_ERROR_NOT_FOUND;
    for (uint32_t i = 0; i < table.n_functions; i++) {
        if (table.functions[i]->kernel != k || table.functions[i]->module != m) continue;
        *out = table.functions[i];
        return CUDA_SUCCESS;
    }
    uint32_t slots = 0;
    char *text = ptx_emit(&m->ptx, k, &slots, error);
    if (!text) return misuse(MISUSE_IMAGE, CUDA_ERROR_INVALID_PTX, "%s", error);
    function *f = calloc(1, sizeof *f);
    if (!f) abort();
    *f = (function){.handle = table.n_functions, .module = m, .kernel = k, .c_text = text, .slots = slots};
    table.functions = array_grow(table.functions, table.n_functions, sizeof f);
    table.functions[table.n_functions++] = f;
    *out = f;
    return CUDA_SUCCESS;
}

void *function_handle(const function *f) { return (void *)(uintptr_t)(FUNCTION_TAG | (uint64_t)f->handle << 4); }

CUresult function_of(context *c, const void *handle, function **out) {
    const uint64_t bits = (uint64_t)(uintptr_t)handle, number = (bits & ~FUNCTION_TAG) >> 4;
    if ((bits & FUNCTION_TAG) != FUNCTION_TAG || number >= table.n_functions ||
        function_handle(table.functions[number]) != handle)
        return misuse(MISUSE_BAD_HANDLE, CUDA_ERROR_INVALID_HANDLE, "%p is no kernel", handle);
    function *f = table.functions[number];
    if (f->module->unloaded)
        return misuse(MISUSE_DESTROYED, CUDA_ERROR_INVALID_HANDLE, "the module of %s was unloaded", f->kernel->name);
    if (!owner_is(f->module->owner, c))
        return misuse(MISUSE_WRONG_CONTEXT, CUDA_ERROR_INVALID_HANDLE, "a kernel of another context");
    *out = f;
    return CUDA_SUCCESS;
}

/* ---- compiling ---- */

static uint64_t hash_text(uint64_t h, const char *text) {
    for (; *text; text++) h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h;
}

/* What lane.h says is part of every kernel. */
static uint64_t hash_header(uint64_t h) {
    char line[512];
    FILE *file = fopen(STANDIN_SOURCE_DIR "/lane.h", "r");
    while (file && fgets(line, sizeof line, file)) h = hash_text(h, line);
    if (file) fclose(file);
    return h;
}

static const char *machine_option(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("fma") ? "-mfma" : "-msse2"; /* without it fma() is a slow function */
#else
    return "-O1";
#endif
}

static bool run_compiler(const char *from, const char *to) {
    extern char **environ;
    char include[] = "-I" STANDIN_SOURCE_DIR,
         *options[] = {"cc", "-std=c17", "-O1", "-w", "-fPIC", "-shared", "-ffp-contract=off",
                       NULL, include,    "-o",  NULL, NULL,    "-lm",     NULL};
    char machine[16], input[512], output[512];
    pid_t child;
    int status = 1;
    snprintf(machine, sizeof machine, "%s", machine_option());
    snprintf(input, sizeof input, "%s", from);
    snprintf(output, sizeof output, "%s", to);
    options[7] = machine, options[10] = output, options[11] = input;
    if (posix_spawnp(&child, "cc", NULL, NULL, options, environ) != 0) return false;
    while (waitpid(child, &status, 0) < 0) {
    }
    return status == 0;
}

/* Written beside and renamed, so that programs that compile the same kernel at once do not meet half a file. */
static bool compile(const char *text, const char *object) {
    char source[400], fresh[400];
    snprintf(source, sizeof source, "%s.%d.c", object, (int)getpid());
    snprintf(fresh, sizeof fresh, "%s.%d.tmp", object, (int)getpid());
    FILE *file = fopen(source, "w");
    if (!file) return false;
    bool good = fputs(text, file) >= 0;
    good = fclose(file) == 0 && good;
    good = good && run_compiler(source, fresh) && rename(fresh, object) == 0;
    unlink(source);
    return good;
}

bool module_compile(function *f, char *error, size_t size) {
    static pthread_mutex_t compiling = PTHREAD_MUTEX_INITIALIZER;
    char object[300];
    pthread_mutex_lock(&compiling);
    if (!f->run) {
        const uint64_t key =
            hash_text(hash_header(hash_text(UINT64_C(0xcbf29ce484222325), f->c_text)), machine_option());
        mkdir(the_standin.settings.cache, 0777);
        snprintf(object, sizeof object, "%s/%.64s-%016llx.so", the_standin.settings.cache, f->kernel->name,
                 (unsigned long long)key);
        if (access(object, R_OK) == 0 || compile(f->c_text, object)) f->object = dlopen(object, RTLD_NOW | RTLD_LOCAL);
        void *symbol = f->object ? dlsym(f->object, "standin_kernel") : NULL;
        memcpy(&f->run, &symbol, sizeof symbol);
        if (!f->run) snprintf(error, size, "%s does not compile to %s", f->kernel->name, object);
    }
    pthread_mutex_unlock(&compiling);
    return f->run != NULL;
}

/* ---- the end ---- */

void module_release_context(const context *c) {
    for (uint32_t i = 0; i < table.n_modules; i++)
        if (owner_is(table.modules[i]->owner, c)) table.modules[i]->unloaded = true;
}

void module_report_leaks(const context *c) {
    for (uint32_t i = 0; i < table.n_modules; i++)
        if (!table.modules[i]->unloaded && owner_is_or_any(table.modules[i]->owner, c))
            misuse(MISUSE_LEAK, CUDA_SUCCESS, "a module");
}

void module_reset(void) {
    for (uint32_t i = 0; i < table.n_functions; i++) {
        if (table.functions[i]->object) dlclose(table.functions[i]->object);
        free(table.functions[i]->c_text);
        free(table.functions[i]);
    }
    for (uint32_t i = 0; i < table.n_modules; i++) {
        ptx_free(&table.modules[i]->ptx);
        free(table.modules[i]);
    }
    free(table.functions);
    free(table.modules);
    memset(&table, 0, sizeof table);
}
