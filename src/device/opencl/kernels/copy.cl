/* Blocks of n floats, a stride apart on either side: joining, cutting, moving rows. Group (run, block). */
KERNEL void copy_blocks(ARENA, ulong from_at, ulong to_at, ulong n, ulong from_stride, ulong to_stride) {
    SKIP_AFTER_FAULT;
    global const float *from = FLOATS(from_at) + get_group_id(1) * from_stride;
    global float *to = FLOATS(to_at) + get_group_id(1) * to_stride;
    FOR_RUN(n, vstore8(vload8(0, from + i), 0, to + i), to[i] = from[i]);
}
