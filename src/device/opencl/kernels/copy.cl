/* Blocks of n floats, a stride apart on either side: joining, cutting, moving rows. Item (run, block). */
kernel void copy_blocks(global char *arena, ulong from_at, ulong to_at, ulong n, ulong from_stride, ulong to_stride) {
    global const float *from = FLOATS(from_at) + get_global_id(1) * from_stride;
    global float *to = FLOATS(to_at) + get_global_id(1) * to_stride;
    FOR_RUN(n, vstore8(vload8(0, from + i), 0, to + i), to[i] = from[i]);
}
