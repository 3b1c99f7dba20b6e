/* The allocator that PyTorch asks for CPU memory while a step runs under Tidemark, and the ways to give a storage other
 * bytes under its tensors. Built on first use against the PyTorch that is there; needs libc10 alone.
 *
 * A thread is in one of three modes. Outside of steps everything goes to PyTorch's own allocator, untouched. Recording:
 * the same, but every allocation and release is noted. Planned: the allocations of the op at hand are answered with the
 * addresses that a plan has for them; what it has none for comes from PyTorch's own allocator and is counted.
 *
 * Invariant: a DataPtr with the deleter `leave` points into an arena (or nowhere) and owns nothing. */
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>

#include <atomic>
#include <cstdint>
#include <cstring>
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

enum class Mode { OFF, RECORD, PLANNED };

thread_local Mode mode = Mode::OFF;
std::atomic<uint64_t> next_id{1};
std::mutex lock; /* protects what follows: storages are released by any thread */
bool noting = false;
std::vector<Event> events;
std::unordered_map<void *, Block> blocks; /* by address */
uint64_t outside_bytes = 0, outside_peak_bytes = 0, outside_count = 0;

struct Answer {
    uint64_t bytes;
    void *address;
};
thread_local std::vector<Answer> answers; /* of the op at hand, in the order of its allocations */
thread_local size_t answered = 0;

c10::Device cpu() { return c10::Device(c10::DeviceType::CPU); }

void leave(void *) {}

void forget(void *address) {
    std::lock_guard<std::mutex> guard(lock);
    auto found = blocks.find(address);
    if (found == blocks.end()) return;
    if (noting) events.push_back({found->second.id, UINT64_MAX});
    if (found->second.counted) outside_bytes -= found->second.bytes;
    blocks.erase(found);
}

/* Of memory that PyTorch's own allocator gave. */
void release(void *address) {
    forget(address);
    c10::GetDefaultCPUAllocator()->raw_deleter()(address);
}

bool is_planned(void *address);

/* For those who ask for memory without a DataPtr (oneDNN's scratchpads) the address is all there is to tell it by. */
void release_raw(void *address) {
    if (!is_planned(address)) release(address);
}

class Allocator final : public c10::Allocator {
  public:
    c10::DataPtr allocate(size_t bytes) override {
        if (mode == Mode::OFF || bytes == 0) return c10::GetDefaultCPUAllocator()->allocate(bytes);
        void *address = mode == Mode::PLANNED ? answer(bytes) : nullptr;
        return address ? c10::DataPtr(address, address, &leave, cpu()) : note(bytes);
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release_raw; }
    void copy_data(void *to, const void *from, size_t bytes) const override { std::memcpy(to, from, bytes); }

  private:
    /* The n-th allocation of an op has the n-th address; one that did not come this time is passed over. */
    static void *answer(size_t bytes) {
        for (size_t i = answered; i < answers.size(); i++) {
            if (answers[i].bytes != bytes) continue;
            answered = i + 1;
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

struct Range {
    uintptr_t begin, end;
};
std::vector<Range> arenas; /* protected by the lock */

bool is_planned(void *address) {
    std::lock_guard<std::mutex> guard(lock);
    auto at = reinterpret_cast<uintptr_t>(address);
    for (const Range &arena : arenas)
        if (at >= arena.begin && at < arena.end) return true;
    return false;
}

Allocator allocator;

c10::StorageImpl *storage_of(uint64_t cdata) { return reinterpret_cast<c10::StorageImpl *>(cdata); }

} // namespace

extern "C" {

void tidemark_torch_install(void) { c10::SetCPUAllocator(&allocator, 255); }

/* 0: off, 1: record, 2: planned; of this thread. Recording begins with no events. */
void tidemark_torch_mode(int wanted) {
    mode = static_cast<Mode>(wanted);
    answers.clear();
    answered = 0;
    std::lock_guard<std::mutex> guard(lock);
    noting = mode == Mode::RECORD;
    if (noting) events.clear();
}

uint64_t tidemark_torch_event_count(void) {
    std::lock_guard<std::mutex> guard(lock);
    return events.size();
}

/* Copies events [first, first + n). */
void tidemark_torch_events(uint64_t first, uint64_t n, uint64_t *out) {
    std::lock_guard<std::mutex> guard(lock);
    std::memcpy(out, events.data() + first, n * sizeof(Event));
}

uint64_t tidemark_torch_next_id(void) { return next_id; }

/* The id of the block that a storage's bytes are; 0: they are not of a recording. */
uint64_t tidemark_torch_block(uint64_t cdata) {
    const c10::DataPtr &data = storage_of(cdata)->data_ptr();
    if (data.get_deleter() != &release) return 0;
    std::lock_guard<std::mutex> guard(lock);
    auto found = blocks.find(data.get());
    return found == blocks.end() ? 0 : found->second.id;
}

/* Addresses in [begin, begin + bytes) are of plans from now on; bytes == 0: no longer. */
void tidemark_torch_arena(uint64_t begin, uint64_t bytes) {
    std::lock_guard<std::mutex> guard(lock);
    std::erase_if(arenas, [begin](const Range &arena) { return arena.begin == begin; });
    if (bytes) arenas.push_back({begin, begin + bytes});
}

/* The addresses for the op that comes next. */
void tidemark_torch_arm(uint64_t n, const uint64_t *sizes, const uint64_t *addresses) {
    answers.resize(n);
    answered = 0;
    for (uint64_t i = 0; i < n; i++) answers[i] = {sizes[i], reinterpret_cast<void *>(addresses[i])};
}

void tidemark_torch_disarm(void) {
    answers.clear();
    answered = 0;
}

/* Storages get these addresses in the arena; 0: none. Bytes they own are released. */
void tidemark_torch_bind(uint64_t n, const uint64_t *cdatas, const uint64_t *addresses) {
    for (uint64_t i = 0; i < n; i++) {
        void *address = reinterpret_cast<void *>(addresses[i]);
        c10::StorageImpl *storage = storage_of(cdatas[i]);
        if (storage->data_ptr().get() == address) continue;
        storage->set_data_ptr_noswap({address, address, &leave, cpu()});
    }
}

/* A storage gets ordinary memory, whose bytes the caller fills; its address. */
uint64_t tidemark_torch_adopt(uint64_t cdata) {
    c10::StorageImpl *storage = storage_of(cdata);
    storage->set_data_ptr_noswap(c10::GetDefaultCPUAllocator()->allocate(storage->nbytes()));
    return reinterpret_cast<uint64_t>(storage->data_ptr().get());
}

uint64_t tidemark_torch_address(uint64_t cdata) {
    return reinterpret_cast<uint64_t>(storage_of(cdata)->data_ptr().get());
}

/* Of planned steps so far: allocations that no plan had an address for, and the most bytes of them at a time. */
void tidemark_torch_outside(uint64_t *count, uint64_t *peak_bytes, int reset) {
    std::lock_guard<std::mutex> guard(lock);
    *count = outside_count;
    *peak_bytes = outside_peak_bytes;
    if (!reset) return;
    outside_count = 0;
    outside_peak_bytes = outside_bytes;
}
}
