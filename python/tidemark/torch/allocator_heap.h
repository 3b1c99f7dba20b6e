/* Blocks of a heap of the library as bytes of storages, in steps without a plan; included by allocator.cpp alone.
 *
 * Invariant: a storage whose DataPtr has the deleter `give_back` or `give_back_absent` is that of one block in `held`. */
#pragma once

#include "allocator_modes.h"

namespace {

/* The calls of tidemark/heap.h, from the library that the package has loaded. */
struct Heap {
    void *self;
    int (*allocate)(void *self, uint64_t bytes, uint64_t *block, void **address);
    int (*pin)(void *self, uint64_t block, void **address);
    void (*unpin)(void *self, uint64_t block);
    void (*release)(void *self, uint64_t block);
    int (*borrow)(void *self, uint32_t value, uint64_t bytes, uint64_t *block);
    const char *(*last_error)(void);
};
Heap heap{};

struct Held {                  /* a block of the heap */
    uint64_t id;               /* in the recording; 0: it was there before */
    void *address;             /* nullptr: on disk, or where it was borrowed */
    c10::StorageImpl *storage; /* nullptr: not known yet; then the block stays pinned */
    bool borrowed;             /* its bytes are never written */
};
std::unordered_map<uint64_t, Held> held; /* by block; protected by the lock, like the next */
std::unordered_map<void *, uint64_t> block_at;
thread_local std::vector<uint64_t> pinned; /* by the op at hand */

void give_back_block(uint64_t block) {
    {
        std::lock_guard<std::mutex> guard(lock);
        auto found = held.find(block);
        if (found == held.end()) return;
        if (noting && found->second.id) events.push_back({found->second.id, UINT64_MAX});
        if (found->second.address) block_at.erase(found->second.address);
        held.erase(found);
    }
    heap.release(heap.self, block);
}

bool find_block(void *address, uint64_t *block) {
    std::lock_guard<std::mutex> guard(lock);
    auto found = block_at.find(address);
    if (found == block_at.end()) return false;
    *block = found->second;
    return true;
}

void give_back(void *address) {
    uint64_t block;
    if (find_block(address, &block)) give_back_block(block);
}

/* Of a storage whose bytes are not in memory: the context is all that is left of it. */
void *absent_context(uint64_t block) { return reinterpret_cast<void *>(block + 1); }
uint64_t block_of_absent(void *context) { return reinterpret_cast<uint64_t>(context) - 1; }
void give_back_absent(void *context) { give_back_block(block_of_absent(context)); }

[[noreturn]] void fail_heap() { TORCH_CHECK_WITH(OutOfMemoryError, false, "tidemark: ", heap.last_error()); }

c10::DataPtr allocate_online(size_t bytes, uint64_t id) {
    uint64_t block;
    void *address;
    if (heap.allocate(heap.self, bytes, &block, &address)) fail_heap();
    pinned.push_back(block);
    std::lock_guard<std::mutex> guard(lock);
    held[block] = {id, address, nullptr, false};
    block_at[address] = block;
    if (noting && id) events.push_back({id, bytes});
    return {address, address, &give_back, cpu()};
}

/* The heap has moved a block. */
void note_move(void *, uint64_t block, void *address) {
    std::lock_guard<std::mutex> guard(lock);
    Held &h = held.at(block);
    if (h.address) block_at.erase(h.address);
    if (address) block_at[address] = block;
    h.address = address;
    (void)data_of(h.storage).release_context(); /* moved, not given back */
    set_data(h.storage, address ? c10::DataPtr(address, address, &give_back, cpu())
                                : c10::DataPtr(nullptr, absent_context(block), &give_back_absent, cpu()));
}

/* The block of a storage; false: its bytes are not of the heap. */
bool block_of(c10::StorageImpl *storage, uint64_t *block) {
    const c10::DataPtr &data = data_of(storage);
    if (data.get_deleter() == &give_back_absent) {
        *block = block_of_absent(data.get_context());
        return true;
    }
    return data.get_deleter() == &give_back && find_block(data.get(), block);
}

void know_storage(uint64_t block, c10::StorageImpl *storage) {
    std::lock_guard<std::mutex> guard(lock);
    held.at(block).storage = storage;
}

void pin_storage(c10::StorageImpl *storage) {
    uint64_t block;
    void *address;
    if (!block_of(storage, &block)) return;
    know_storage(block, storage);
    if (heap.pin(heap.self, block, &address)) fail_heap();
    pinned.push_back(block);
}

void import_storage(c10::StorageImpl *storage) {
    uint64_t block;
    if (block_of(storage, &block) || !data_of(storage).get() || storage->nbytes() <= SMALL_BYTES) return;
    c10::DataPtr memory = allocate_online(storage->nbytes(), 0);
    std::memcpy(memory.get(), data_of(storage).get(), storage->nbytes());
    set_data(storage, std::move(memory));
}

void borrow_storage(c10::StorageImpl *storage, uint32_t value) {
    uint64_t block;
    if (block_of(storage, &block) || storage->nbytes() == 0) return;
    if (heap.borrow(heap.self, value, storage->nbytes(), &block)) fail_heap();
    std::lock_guard<std::mutex> guard(lock);
    held[block] = {0, nullptr, storage, true};
    set_data(storage, {nullptr, absent_context(block), &give_back_absent, cpu()});
}

bool is_held(void *address) {
    uint64_t block;
    return find_block(address, &block);
}

/* A storage that is in memory and is to stay there leaves the heap for good. */
void move_out(uint64_t block, c10::StorageImpl *storage) {
    void *address = c10::GetDefaultCPUAllocator()->allocate(storage->nbytes()).release_context();
    std::memcpy(address, data_of(storage).get(), storage->nbytes());
    {
        std::lock_guard<std::mutex> guard(lock);
        blocks[address] = {held.at(block).id, storage->nbytes(), false};
        block_at.erase(held.at(block).address);
        held.erase(block);
    }
    (void)data_of(storage).release_context();
    set_data(storage, {address, address, &release, cpu()});
    heap.release(heap.self, block);
}

} // namespace
