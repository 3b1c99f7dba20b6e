/* Lists of posted messages, in the order in which they came. */
#include "net/net_data.h"

void tide__net_posts_push(tide__net_posts *list, tide__net_post *post) {
    post->next = NULL;
    if (list->last)
        list->last->next = post;
    else
        list->first = post;
    list->last = post;
}

tide__net_post *tide__net_posts_pop(tide__net_posts *list) {
    tide__net_post *post = list->first;
    if (!post) return NULL;
    list->first = post->next;
    if (!list->first) list->last = NULL;
    return post;
}

static tide__net_post *take(tide__net_posts *list, bool by_tag, uint64_t key) {
    tide__net_post *before = NULL;
    for (tide__net_post *p = list->first; p; before = p, p = p->next) {
        if ((by_tag ? p->tag : p->id) != key) continue;
        if (!before) return tide__net_posts_pop(list);
        before->next = p->next;
        if (list->last == p) list->last = before;
        return p;
    }
    return NULL;
}

tide__net_post *tide__net_posts_take_tag(tide__net_posts *list, uint64_t tag) { return take(list, true, tag); }
tide__net_post *tide__net_posts_take_id(tide__net_posts *list, uint64_t id) { return take(list, false, id); }
