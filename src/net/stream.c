/* Streams: the bytes of cleared messages, in pieces. A receiver checks each piece while it is warm. */
#include "net/net_data.h"

void tide__net_stream_add(tide__net_stream *stream, tide__net_post *post) {
    tide__net_posts_push(&stream->queue, post);
    if (!stream->next) stream->next = post;
}

static uint32_t piece_of(const tide__net_post *post, uint64_t done_bytes) {
    uint64_t left = post->size_bytes - done_bytes;
    return left < TIDE__NET_PIECE_BYTES ? (uint32_t)left : TIDE__NET_PIECE_BYTES;
}

static bool start_pieces(tide_net *net, uint32_t peer, tide__net_stream *s) {
    bool moved = false;
    while (s->next && s->n < TIDE__NET_DEPTH && !tide__net_faulty(net)) {
        tide__net_post *post = s->next;
        uint32_t at = (s->first + s->n) % TIDE__NET_DEPTH, size_bytes = piece_of(post, post->started_bytes);
        char *data = post->data + post->started_bytes;
        int failed = post->is_send ? net->v->send(net->t, peer, data, size_bytes, &s->piece[at].request)
                                   : net->v->receive(net->t, peer, data, size_bytes, &s->piece[at].request);
        if (failed) {
            tide__net_blame(net, peer, "%s", net->v->error(net->t));
            return true;
        }
        s->piece[at].post = post;
        s->piece[at].size_bytes = size_bytes;
        s->n++;
        post->started_bytes += size_bytes;
        if (post->started_bytes == post->size_bytes) s->next = post->next;
        moved = true;
    }
    return moved;
}

static void end_piece(tide_net *net, tide__net_stream *s) {
    tide__net_post *post = s->piece[s->first].post;
    uint32_t size_bytes = s->piece[s->first].size_bytes;
    if (!post->is_send)
        post->moved_sum = tide__net_sum_piece(post->moved_sum, post->data + post->moved_bytes, size_bytes);
    post->moved_bytes += size_bytes;
    s->first = (s->first + 1) % TIDE__NET_DEPTH;
    s->n--;
    if (post->moved_bytes < post->size_bytes) return;
    if (!post->is_send && post->moved_sum != post->sum) {
        tide__net_blame(net, post->peer, "a message of %llu bytes from it arrived damaged",
                        (unsigned long long)post->size_bytes);
        return;
    }
    (void)tide__net_posts_pop(&s->queue);
    tide__net_complete(net, post, TIDE_OK);
}

static bool end_pieces(tide_net *net, uint32_t peer, tide__net_stream *s) {
    bool moved = false;
    while (s->n && !tide__net_faulty(net)) {
        bool done = false;
        if (net->v->test(net->t, &s->piece[s->first].request, &done)) {
            tide__net_blame(net, peer, "%s", net->v->error(net->t));
            return true;
        }
        if (!done) break;
        end_piece(net, s);
        moved = true;
    }
    return moved;
}

bool tide__net_stream_move(tide_net *net, uint32_t peer, tide__net_stream *stream) {
    bool ended = end_pieces(net, peer, stream);
    return start_pieces(net, peer, stream) || ended;
}
