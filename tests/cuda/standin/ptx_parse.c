/* Reads PTX: directives of the module, then kernels, from the tokens of ptx_scan.c. Stops at the first thing it does not
 * know; the error names the line. Every loop advances by a token, so it ends with the text. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ptx_scan.h"

/* ---- types and variables ---- */

static uint64_t align_up(uint64_t v, uint32_t align) { return (v + align - 1) / align * align; }

/* = {1, 2, ...}: initial values of a module's variable. */
static void take_values(scanner *s, ptx_variable *v) {
    const uint32_t element = v->element_bytes;
    v->values = calloc(1, v->size_bytes ? v->size_bytes : 1);
    if (!v->values) scan_fail(s, "no memory");
    bool braces = scan_take(s, "{");
    for (uint64_t at = 0;; at += element) {
        bool minus = scan_take(s, "-");
        bool real = s->token.length == 10 && s->token.at[0] == '0' && (s->token.at[1] | 32) == 'f';
        uint64_t bits = real ? strtoull(s->token.at + 2, NULL, 16) : 0;
        if (real)
            scan_next(s);
        else
            bits = scan_number(s);
        if (minus) bits = 0 - bits;
        if (at + element > v->size_bytes) scan_fail(s, "more values than elements");
        memcpy(v->values + at, &bits, element);
        if (!braces || !scan_take(s, ",")) break;
    }
    if (braces) scan_expect(s, "}");
}

/* .align n .type name[size]: what stands behind the space. */
static ptx_variable take_variable(scanner *s, ptx_space space) {
    ptx_variable v = {.space = space};
    while (scan_take(s, ".ptr") || scan_take(s, ".global") || scan_is(s, ".align")) {
        if (scan_take(s, ".align")) v.align = scan_small(s);
    }
    ptx_type type = scan_type(s);
    while (scan_take(s, ".ptr") || scan_take(s, ".global") || scan_take(s, ".shared") || scan_is(s, ".align"))
        if (scan_take(s, ".align")) scan_small(s); /* of what the pointer points to */
    if (type.bits == 1) scan_fail(s, "a variable cannot be a predicate");
    v.name = scan_word(s);
    v.size_bytes = v.element_bytes = type.bits / 8;
    if (v.align == 0) v.align = type.bits / 8;
    if (scan_take(s, "[")) {
        v.size_bytes = scan_is(s, "]") ? 0 : v.size_bytes * scan_small(s);
        scan_expect(s, "]");
    }
    if (v.align & (v.align - 1)) scan_fail(s, "an alignment is no power of two");
    return v;
}

static void add_kernel_variable(scanner *s, ptx_kernel *k, ptx_variable v) {
    uint32_t *total = v.space == PTX_PARAM    ? &k->parameter_bytes
                      : v.space == PTX_SHARED ? &k->shared_bytes
                                              : &k->local_bytes;
    v.at = align_up(*total, v.align);
    if (!v.external) *total = (uint32_t)(v.at + v.size_bytes);
    k->variables = scan_grow(s, k->variables, k->n_variables, sizeof v);
    k->variables[k->n_variables++] = v;
    k->n_parameters += v.space == PTX_PARAM;
}

static void add_module_variable(scanner *s, ptx_variable v) {
    ptx_module *m = s->module;
    v.at = m->n_variables;
    m->variables = scan_grow(s, m->variables, m->n_variables, sizeof v);
    m->variables[m->n_variables++] = v;
}

/* ---- registers ---- */

static void take_registers(scanner *s, ptx_kernel *k) {
    ptx_type type = scan_type(s);
    do {
        ptx_register r = {.prefix = scan_word(s), .first = k->register_count, .type = type};
        if (scan_take(s, "<")) {
            r.count = scan_small(s);
            scan_expect(s, ">");
        }
        k->register_count += r.count ? r.count : 1;
        k->registers = scan_grow(s, k->registers, k->n_registers, sizeof r);
        k->registers[k->n_registers++] = r;
    } while (scan_take(s, ","));
    scan_expect(s, ";");
}

/* Later declarations hide earlier ones: those of an inner scope have the same type wherever compilers write them. */
static bool find_register(const ptx_kernel *k, ptx_text name, uint32_t *out) {
    for (uint32_t i = k->n_registers; i-- > 0;) {
        const ptx_register *r = &k->registers[i];
        if (name.length < r->prefix.length || memcmp(name.at, r->prefix.at, r->prefix.length) != 0) continue;
        uint32_t number = 0;
        size_t at = r->prefix.length;
        if ((at == name.length) != (r->count == 0)) continue;
        for (; at < name.length && isdigit((unsigned char)name.at[at]) && number < 1u << 24; at++)
            number = 10 * number + (uint32_t)(name.at[at] - '0');
        if (at < name.length || (r->count && number >= r->count)) continue;
        *out = r->first + number;
        return true;
    }
    return false;
}

ptx_type ptx_register_type(const ptx_kernel *k, uint32_t reg) {
    for (uint32_t i = 0; i < k->n_registers; i++) {
        const ptx_register *r = &k->registers[i];
        if (reg - r->first < (r->count ? r->count : 1)) return r->type;
    }
    return (ptx_type){PTX_NONE, 0};
}

/* ---- instructions ---- */

static ptx_operand register_or_name(scanner *s, const ptx_kernel *k) {
    ptx_operand o = {.form = PTX_NAME, .name = scan_word(s)};
    o.has_reg = find_register(k, o.name, &o.reg);
    if (o.has_reg) o.form = PTX_REGISTER;
    return o;
}

static bool is_real(ptx_text t) {
    return t.length > 2 && t.at[0] == '0' &&
           ((t.length == 10 && (t.at[1] | 32) == 'f') || (t.length == 18 && (t.at[1] | 32) == 'd'));
}

static ptx_operand take_constant(scanner *s) {
    ptx_operand o = {.form = PTX_INTEGER};
    bool minus = scan_take(s, "-");
    if (is_real(s->token)) {
        o.form = PTX_REAL;
        o.number = (int64_t)strtoull(s->token.at + 2, NULL, 16);
        scan_next(s);
    } else {
        o.number = (int64_t)scan_number(s);
    }
    if (minus) o.number = (int64_t)(0 - (uint64_t)o.number);
    return o;
}

static ptx_operand take_address(scanner *s, const ptx_kernel *k) {
    ptx_operand o = {.form = PTX_ADDRESS};
    if (!isdigit((unsigned char)s->token.at[0])) {
        o = register_or_name(s, k);
        o.form = PTX_ADDRESS;
        if (scan_take(s, "+")) o.number = take_constant(s).number;
    } else {
        o.number = take_constant(s).number;
    }
    scan_expect(s, "]");
    return o;
}

static void add_operand(scanner *s, ptx_instruction *i, ptx_operand o) {
    if (i->n_operands == PTX_MAX_OPERANDS) scan_fail(s, "too many operands");
    i->operand[i->n_operands++] = o;
}

static ptx_operand take_simple(scanner *s, const ptx_kernel *k) {
    char first = s->token.length ? s->token.at[0] : 0;
    if (isdigit((unsigned char)first) || first == '-') return take_constant(s);
    if (scan_take(s, "_")) return (ptx_operand){.form = PTX_SINK};
    bool negated = scan_take(s, "!");
    ptx_operand o = register_or_name(s, k);
    o.negated = negated;
    return o;
}

static void take_operand(scanner *s, const ptx_kernel *k, ptx_instruction *i) {
    if (scan_take(s, "[")) {
        add_operand(s, i, take_address(s, k));
    } else if (scan_take(s, "{")) {
        s->groups++;
        do {
            ptx_operand o = take_simple(s, k);
            o.group = s->groups;
            add_operand(s, i, o);
        } while (scan_take(s, ","));
        scan_expect(s, "}");
    } else {
        ptx_operand o = take_simple(s, k);
        if (scan_is(s, "|")) o.group = ++s->groups;
        add_operand(s, i, o);
        while (scan_take(s, "|")) {
            o = take_simple(s, k);
            o.group = s->groups;
            add_operand(s, i, o);
        }
    }
}

static void split_opcode(scanner *s, ptx_text t, ptx_instruction *i) {
    while (t.length) {
        if (i->n_words == PTX_MAX_WORDS) scan_fail(s, "too many parts of an opcode");
        const char *dot = memchr(t.at, '.', t.length);
        size_t n = dot ? (size_t)(dot - t.at) : t.length;
        i->word[i->n_words++] = (ptx_text){t.at, n};
        n += dot != NULL;
        t.at += n, t.length -= n;
        /* "::" within a part: shared::cta */
    }
}

static bool is_barrier(const ptx_instruction *i) { return ptx_is(i->word[0], "bar") || ptx_is(i->word[0], "barrier"); }

static void take_instruction(scanner *s, ptx_kernel *k, ptx_text label) {
    ptx_instruction i = {.line = s->line, .label = label};
    s->groups = 0;
    if (scan_take(s, "@")) {
        i.guarded = true;
        i.guard_negated = scan_take(s, "!");
        ptx_operand o = register_or_name(s, k);
        if (!o.has_reg) scan_fail(s, "an unknown predicate");
        i.guard = o.reg;
    }
    if (scan_is(s, ";") || scan_is(s, "}")) { /* a label at the end of a scope */
        split_opcode(s, (ptx_text){"nop", 3}, &i);
    } else {
        split_opcode(s, scan_word(s), &i);
        if (!scan_is(s, ";")) do
                take_operand(s, k, &i);
            while (scan_take(s, ","));
    }
    if (!scan_is(s, "}")) scan_expect(s, ";");
    if (is_barrier(&i)) i.barrier = ++k->n_barriers;
    k->instructions = scan_grow(s, k->instructions, k->n_instructions, sizeof i);
    k->instructions[k->n_instructions++] = i;
}

bool ptx_has(const ptx_instruction *i, const char *word) {
    for (uint32_t w = 1; w < i->n_words; w++)
        if (ptx_is(i->word[w], word)) return true;
    return false;
}

ptx_type ptx_type_of(const ptx_instruction *i, uint32_t from_end) {
    ptx_type type;
    for (uint32_t w = i->n_words; w-- > 1;)
        if (ptx_parse_type(i->word[w], &type) && from_end-- == 0) return type;
    return (ptx_type){PTX_NONE, 0};
}

/* ---- bodies ---- */

static void skip_to(scanner *s, const char *word) {
    while (s->token.length && !scan_is(s, word)) scan_next(s);
    scan_expect(s, word);
}

static void take_statement(scanner *s, ptx_kernel *k, ptx_text *label) {
    if (scan_take(s, ".reg")) {
        take_registers(s, k);
    } else if (scan_take(s, ".shared")) {
        add_kernel_variable(s, k, take_variable(s, PTX_SHARED));
        scan_expect(s, ";");
    } else if (scan_take(s, ".local")) {
        add_kernel_variable(s, k, take_variable(s, PTX_LOCAL));
        scan_expect(s, ";");
    } else if (scan_take(s, ".pragma")) {
        skip_to(s, ";");
    } else if (scan_take(s, ".loc")) {
        uint32_t line = s->line;
        while (s->token.length && s->line == line) scan_next(s);
    } else if (s->token.at[0] == '.') {
        scan_fail(s, "unknown directive \"%.*s\"", (int)s->token.length, s->token.at);
    } else if (scan_is_part(s->token.at[0])) {
        const char *behind = s->at;
        while (isspace((unsigned char)*behind)) behind++;
        if (*behind != ':') {
            take_instruction(s, k, *label);
            label->length = 0;
            return;
        }
        if (label->length) take_instruction(s, k, *label);
        *label = scan_word(s);
        scan_expect(s, ":");
    } else {
        take_instruction(s, k, *label);
        label->length = 0;
    }
}

static const ptx_variable *find_variable(const ptx_variable *v, uint32_t n, ptx_text name) {
    for (uint32_t i = 0; i < n; i++)
        if (v[i].name.length == name.length && memcmp(v[i].name.at, name.at, name.length) == 0) return &v[i];
    return NULL;
}

/* Shared variables of the module that a kernel names become its own: each kernel has them at an offset of its own. */
static void adopt_shared(scanner *s, ptx_kernel *k) {
    for (uint32_t i = 0; i < k->n_instructions; i++) {
        for (uint32_t o = 0; o < k->instructions[i].n_operands; o++) {
            const ptx_text name = k->instructions[i].operand[o].name;
            if (find_variable(k->variables, k->n_variables, name)) continue;
            const ptx_variable *v = find_variable(s->module->variables, s->module->n_variables, name);
            if (v && v->space == PTX_SHARED) add_kernel_variable(s, k, *v);
        }
    }
}

static void take_body(scanner *s, ptx_kernel *k) {
    uint32_t depth = 1;
    ptx_text label = {NULL, 0};
    scan_expect(s, "{");
    while (depth) {
        if (s->token.length == 0) scan_fail(s, "the body of %s does not end", k->name);
        if (scan_take(s, "{")) {
            depth++;
        } else if (scan_is(s, "}")) {
            depth--;
            if (depth) scan_next(s);
        } else {
            take_statement(s, k, &label);
        }
    }
    /* A label at the very end, or none: there the lane ends. */
    ptx_instruction end = {.line = s->line, .label = label};
    split_opcode(s, (ptx_text){"ret", 3}, &end);
    k->instructions = scan_grow(s, k->instructions, k->n_instructions, sizeof end);
    k->instructions[k->n_instructions++] = end;
    adopt_shared(s, k);
    k->text.length = (size_t)(s->at - k->text.at);
    scan_next(s);
}

static void take_limits(scanner *s, ptx_kernel *k) {
    while (!scan_is(s, "{")) {
        bool most = scan_is(s, ".maxntid"), required = scan_is(s, ".reqntid");
        if (!most && !required && !scan_is(s, ".minnctapersm") && !scan_is(s, ".maxnreg"))
            scan_fail(s, "unknown directive \"%.*s\"", (int)s->token.length, s->token.at);
        scan_next(s);
        uint32_t lanes = 1, n = 0;
        if (required) k->required[0] = k->required[1] = k->required[2] = 1;
        do {
            uint32_t size = scan_small(s);
            if (n == 3 || size == 0) scan_fail(s, "a wrong limit");
            lanes *= size;
            if (required) k->required[n] = size;
            n++;
        } while (scan_take(s, ","));
        if (most || required) k->max_lanes = lanes;
    }
}

static void take_kernel(scanner *s) {
    ptx_module *m = s->module;
    m->kernels = scan_grow(s, m->kernels, m->n_kernels, sizeof *m->kernels);
    ptx_kernel *k = &m->kernels[m->n_kernels++];
    memset(k, 0, sizeof *k);
    k->text.at = s->token.at;
    ptx_text name = scan_word(s);
    if (name.length >= sizeof k->name) scan_fail(s, "a kernel's name is too long");
    memcpy(k->name, name.at, name.length);
    if (scan_take(s, "(") && !scan_take(s, ")")) {
        do {
            scan_expect(s, ".param");
            add_kernel_variable(s, k, take_variable(s, PTX_PARAM));
        } while (scan_take(s, ","));
        scan_expect(s, ")");
    }
    take_limits(s, k);
    take_body(s, k);
}

/* ---- modules ---- */

static void take_header(scanner *s) {
    scan_expect(s, ".version");
    ptx_text version = scan_word(s);
    if (version.length < 3 || !isdigit((unsigned char)version.at[0])) scan_fail(s, "a wrong .version");
    s->module->version = (uint32_t)(10 * (version.at[0] - '0') + (version.at[version.length - 1] - '0'));
    scan_expect(s, ".target");
    ptx_text target = scan_word(s);
    if (target.length < 4 || memcmp(target.at, "sm_", 3) != 0) scan_fail(s, "a wrong .target");
    s->module->target = (uint32_t)strtoul(target.at + 3, NULL, 10);
    while (scan_take(s, ",")) scan_word(s);
    scan_expect(s, ".address_size");
    if (scan_number(s) != 64) scan_fail(s, "addresses have 64 bits");
}

static void take_directive(scanner *s) {
    bool external = false;
    while (scan_is(s, ".visible") || scan_is(s, ".extern") || scan_is(s, ".weak")) {
        external |= scan_is(s, ".extern");
        scan_next(s);
    }
    if (scan_take(s, ".entry")) {
        take_kernel(s);
    } else if (scan_take(s, ".global") || scan_take(s, ".const")) {
        add_module_variable(s, take_variable(s, PTX_GLOBAL));
        if (scan_take(s, "=")) take_values(s, &s->module->variables[s->module->n_variables - 1]);
        scan_expect(s, ";");
    } else if (scan_take(s, ".shared")) {
        ptx_variable v = take_variable(s, PTX_SHARED);
        v.external = external;
        add_module_variable(s, v);
        scan_expect(s, ";");
    } else if (scan_take(s, ".file")) {
        uint32_t line = s->line;
        while (s->token.length && s->line == line) scan_next(s);
    } else {
        scan_fail(s, "unknown directive \"%.*s\"", (int)s->token.length, s->token.at);
    }
}

bool ptx_parse(const char *text, ptx_module *out, char error[PTX_ERROR_SIZE]) {
    *out = (ptx_module){.source = strdup(text)};
    scanner s = {.at = out->source, .line = 1, .error = error, .module = out};
    if (!out->source) return false;
    if (setjmp(s.failed)) {
        ptx_free(out);
        return false;
    }
    scan_next(&s);
    take_header(&s);
    while (s.token.length) take_directive(&s);
    return true;
}

void ptx_free(ptx_module *m) {
    for (uint32_t i = 0; i < m->n_kernels; i++) {
        free(m->kernels[i].variables);
        free(m->kernels[i].registers);
        free(m->kernels[i].instructions);
    }
    for (uint32_t i = 0; i < m->n_variables; i++) free(m->variables[i].values);
    free(m->kernels);
    free(m->variables);
    free(m->source);
    *m = (ptx_module){.source = NULL};
}
