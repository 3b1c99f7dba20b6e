/* What memory a thread is given, by its mode (see allocator.cpp, which alone includes this): from PyTorch's own allocator, noted
 * or not, from the heap (allocator_heap.h), at planned addresses or in the annex.
 *
 * Invariant: everything that is protected by the lock is used under it, as storages are released by any thread. */
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace {

struct Block { /* of a recording, or one that no plan has an address for */
    uint64_t id, bytes;
    bool counted;
};

struct Event {
    uint64_t id;
    uint64_t bytes; /* UINT64_MAX: released */
};

enum class Mode { OFF, RECORD, PLANNED, ONLINE, EMPTY };

constexpr size_t SMALL_BYTES = 64; /* numbers: what leaves must not wait for them, nor for what never leaves */

thread_local Mode mode = Mode::OFF;
thread_local bool paused = false; /* what is allocated is Tidemark's own */
std::atomic<uint64_t> next_id{1};
std::mutex lock; /* protects what follows: storages are released by any thread */
bool noting = false;
std::vector<Event> events;
std::unordered_map<void *, Block> blocks; /* by address */
uint64_t outside_bytes = 0, outside_peak_bytes = 0, outside_count = 0;

struct Answer {
    uint64_t bytes;
    void *address; /* nullptr: outlives its op unseen, so that no plan could move it; of the annex */
    bool has_room; /* its size depends on values: bytes at most */
};
constexpr uint64_t ROOM = UINT64_C(1) << 63; /* with its bytes, from Python */
/* Of the op at hand, in the order of its allocations; those before `answered` are passed. */
thread_local const Answer *answers = nullptr;
thread_local size_t n_answers = 0, answered = 0, n_given = 0;
thread_local std::vector<Answer> given; /* and not left since */

void arm(const Answer *first, size_t n) {
    answers = first;
    n_answers = n;
    answered = n_given = 0;
    given.clear();
}

c10::Device cpu() { return c10::Device(c10::DeviceType::CPU); }

void leave(void *address) {
    for (size_t i = given.size(); i-- > 0;)
        if (given[i].address == address) given.erase(given.begin() + static_cast<std::ptrdiff_t>(i));
}

/* An op whose allocations come in another order than recorded might be given an address twice. */
bool is_given(const Answer &a) {
    auto begin = [](const Answer &b) { return reinterpret_cast<uintptr_t>(b.address); };
    for (const Answer &b : given)
        if (begin(a) < begin(b) + b.bytes && begin(b) < begin(a) + a.bytes) return true;
    return false;
}

constexpr std::align_val_t ANNEX_ALIGN{64};

/* Bytes of the budget for what a plan has no address for: what Python allocates between ops (states of random numbers), and
 * what outlives its op unseen. Lasts until nothing is in it any more. */
struct Annex {
    explicit Annex(uint64_t n) : bytes(static_cast<char *>(::operator new(n, ANNEX_ALIGN))), size(n) {}
    ~Annex() { ::operator delete(bytes, ANNEX_ALIGN); }
    Annex(const Annex &) = delete;
    Annex &operator=(const Annex &) = delete;
    char *bytes;
    uint64_t size;
    std::map<uint64_t, uint64_t> taken; /* begin -> end, as offsets */
    bool closed = false;
};
std::vector<std::unique_ptr<Annex>> annexes; /* protected by the lock */
thread_local Annex *annex = nullptr;         /* of the plan that is followed */

void *annex_take(size_t bytes) {
    if (!annex) return nullptr;
    std::lock_guard<std::mutex> guard(lock);
    uint64_t at = 0;
    for (const auto &[begin, end] : annex->taken) {
        if (begin - at >= bytes) break;
        at = (end + 63) / 64 * 64;
    }
    if (at > annex->size || bytes > annex->size - at) return nullptr;
    annex->taken[at] = at + bytes;
    return annex->bytes + at;
}

/* Gives it back; false: it is in no annex. */
bool annex_drop(void *address) {
    std::lock_guard<std::mutex> guard(lock);
    for (auto &a : annexes) {
        char *begin = a->bytes;
        if (std::less<void *>()(address, begin) || !std::less<void *>()(address, begin + a->size)) continue;
        a->taken.erase(static_cast<uint64_t>(static_cast<char *>(address) - begin));
        if (a->closed && a->taken.empty()) std::erase_if(annexes, [&a](const auto &other) { return &other == &a; });
        return true;
    }
    return false;
}

void leave_annex(void *address) { (void)annex_drop(address); }

c10::DataPtr no_bytes() { return {nullptr, nullptr, &leave, cpu()}; }

/* Also of a storage that refuses to tell others, because it has no bytes. */
c10::DataPtr &data_of(c10::StorageImpl *storage) { return storage->_mutable_data_ptr_no_checks(); }

/* A storage without bytes refuses access: kernels would follow the null pointer. */
void set_data(c10::StorageImpl *storage, c10::DataPtr &&data) {
    bool had = data_of(storage).get() != nullptr, has = data.get() != nullptr;
    storage->set_data_ptr_noswap(std::move(data));
    if (!has && storage->nbytes())
        storage->release_data_and_set_meta_custom_data_ptr_error_msg_(
            "tidemark: the bytes of this tensor are not in memory. Frozen weights have theirs inside budgeted steps "
            "and under "
            "tidemark.torch.reading(), values of a step while the step needs them.");
    else if (!had)
        storage->clear_data_ptr_access_error_msg_();
}

void forget(void *address) {
    std::lock_guard<std::mutex> guard(lock);
    auto found = blocks.find(address);
    if (found == blocks.end()) return;
    if (noting && found->second.id) events.push_back({found->second.id, UINT64_MAX});
    if (found->second.counted) outside_bytes -= found->second.bytes;
    blocks.erase(found);
}

/* Of memory that PyTorch's own allocator gave. */
void release(void *address) {
    forget(address);
    c10::GetDefaultCPUAllocator()->raw_deleter()(address);
}

bool is_planned(void *address);

bool is_held(void *address);
void give_back(void *address);
c10::DataPtr allocate_online(size_t bytes, uint64_t id);

/* For those who ask for memory without a DataPtr (oneDNN's scratchpads) the address is all there is to tell it by. */
void release_raw(void *address) {
    if (is_held(address))
        give_back(address);
    else if (annex_drop(address))
        return;
    else if (is_planned(address))
        leave(address);
    else
        release(address);
}

class Allocator final : public c10::Allocator {
  public:
    c10::DataPtr allocate(size_t bytes) override {
        if (mode == Mode::OFF || paused || bytes == 0) return c10::GetDefaultCPUAllocator()->allocate(bytes);
        if (mode == Mode::EMPTY) return no_bytes();
        if (mode == Mode::ONLINE && bytes > SMALL_BYTES) return allocate_online(bytes, next_id++);
        if (mode != Mode::PLANNED) return note(bytes);
        void *address = answer(bytes);
        if (address) return {address, address, &leave, cpu()};
        address = annex_take(bytes);
        return address ? c10::DataPtr(address, address, &leave_annex, cpu()) : note(bytes);
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release_raw; }
    void copy_data(void *to, const void *from, size_t bytes) const override { std::memcpy(to, from, bytes); }

  private:
    /* The n-th allocation of an op has the n-th address; one that did not come this time is passed over. */
    static void *answer(size_t bytes) {
        for (size_t i = answered; i < n_answers; i++) {
            if (answers[i].has_room ? bytes > answers[i].bytes : bytes != answers[i].bytes) continue;
            if (answers[i].address && is_given(answers[i])) return nullptr;
            answered = i + 1;
            n_given++;
            if (answers[i].address) given.push_back(answers[i]);
            return answers[i].address;
        }
        return nullptr;
    }

    static c10::DataPtr note(size_t bytes) {
        c10::DataPtr memory = c10::GetDefaultCPUAllocator()->allocate(bytes);
        void *address = memory.release_context(); /* which is the address itself */
        bool counted = mode == Mode::PLANNED;
        std::lock_guard<std::mutex> guard(lock);
        blocks[address] = {next_id++, bytes, counted};
        if (noting) events.push_back({blocks[address].id, bytes});
        if (counted) {
            outside_count++;
            outside_bytes += bytes;
            if (outside_bytes > outside_peak_bytes) outside_peak_bytes = outside_bytes;
        }
        return {address, address, &release, cpu()};
    }
};

} // namespace
