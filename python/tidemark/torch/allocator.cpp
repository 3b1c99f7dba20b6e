/* The allocator that PyTorch asks for CPU memory while a step runs under Tidemark, and the ways to give a storage other
 * bytes under its tensors. Built on first use against the PyTorch that is there; needs libc10 alone.
 *
 * A thread is in one of four modes. Outside of steps everything goes to PyTorch's own allocator, untouched. Recording:
 * the same, but every allocation and release is noted. Online: noted as well, and all memory but the smallest comes from a heap of
 * the library, whose blocks may leave to disk while no op uses their storages. Planned: the allocations of the op at hand are answered with the
 * addresses that a plan has for them; what it has none for lies in the annex, a few bytes of the budget beside the arena. What finds no
 * room there either comes from PyTorch's own allocator and is counted.
 *
 * Invariant: a DataPtr with the deleter `leave` points into an arena (or nowhere) and owns nothing. */
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>

#include <malloc.h>

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

/* ---- online ---- */

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

void bind(c10::StorageImpl *storage, uint64_t at) {
    void *address = reinterpret_cast<void *>(at);
    if (address && data_of(storage).get() == address) return;
    set_data(storage, {address, address, &leave, cpu()});
}

/* ---- following a plan ---- */

struct Place {
    uint64_t slot, address;
};

struct Turn { /* a RUN of the plan: what happens just before it */
    std::vector<Place> places; /* what has left since the turn before (0), then where operands lie */
    std::vector<Answer> answers;
    std::vector<Place> made; /* storages that its op makes, for replays */
};

struct Slot {
    uint64_t cdata, address; /* of its storage, and where that has its bytes, 0: nowhere */
};

struct Follower {
    std::vector<Turn> turns;
    std::vector<Slot> slots;
    std::vector<bool> stays;
    Annex *annex;
    void *run, *call;
    int (*pull)(void *run, void *call); /* tide_run_pull */
};

} // namespace

extern "C" {

void tidemark_torch_install(void) { c10::SetCPUAllocator(&allocator, 255); }

/* 0: off, 1: record, 2: planned, 3: online, 4: what is allocated has no bytes; of this thread. Recording begins with no events. */
void tidemark_torch_mode(int wanted) {
    mode = static_cast<Mode>(wanted);
    arm(nullptr, 0);
    std::lock_guard<std::mutex> guard(lock);
    noting = mode == Mode::RECORD || mode == Mode::ONLINE;
    if (noting) events.clear();
}

/* What this thread allocates until it goes on (0) is ordinary memory that nobody notes. */
void tidemark_torch_pause(int wanted) { paused = wanted; }

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
    const c10::DataPtr &data = data_of(storage_of(cdata));
    uint64_t block;
    bool online = block_of(storage_of(cdata), &block);
    std::lock_guard<std::mutex> guard(lock);
    if (online) return held.at(block).id;
    if (data.get_deleter() != &release) return 0;
    auto found = blocks.find(data.get());
    return found == blocks.end() ? 0 : found->second.id;
}

/* Addresses in [begin, begin + bytes) are of plans from now on; bytes == 0: no longer. */
void tidemark_torch_arena(uint64_t begin, uint64_t bytes) {
    std::lock_guard<std::mutex> guard(lock);
    std::erase_if(arenas, [begin](const Range &arena) { return arena.begin == begin; });
    if (bytes) arenas.push_back({begin, begin + bytes});
}

void tidemark_torch_disarm(void) { arm(nullptr, 0); }

/* Storages get these addresses in the arena; 0: none. Bytes they own are released. */
void tidemark_torch_bind(uint64_t n, const uint64_t *cdatas, const uint64_t *addresses) {
    for (uint64_t i = 0; i < n; i++) bind(storage_of(cdatas[i]), addresses[i]);
}

/* Of a run of the library with n slots and an annex of so many bytes; turns are added in the order of the plan. */
void *tidemark_torch_follower(void *run, void *pull, void *call, uint64_t n_slots, uint64_t annex_bytes) {
    auto place = std::make_unique<Annex>(annex_bytes);
    auto *f = new Follower{{}, std::vector<Slot>(n_slots), std::vector<bool>(n_slots), place.get(), run, call,
                           reinterpret_cast<int (*)(void *, void *)>(pull)};
    std::lock_guard<std::mutex> guard(lock);
    annexes.push_back(std::move(place));
    return f;
}

void tidemark_torch_follower_end(void *follower) {
    auto *f = static_cast<Follower *>(follower);
    if (annex == f->annex) annex = nullptr;
    std::lock_guard<std::mutex> guard(lock);
    f->annex->closed = true;
    if (f->annex->taken.empty()) std::erase_if(annexes, [f](const auto &a) { return a.get() == f->annex; });
    delete f;
}

/* A step begins: what this thread allocates is the plan's. */
void tidemark_torch_follow(void *follower) {
    annex = static_cast<Follower *>(follower)->annex;
    tidemark_torch_mode(static_cast<int>(Mode::PLANNED));
}

/* places and made: pairs of slot and address; answers: pairs of bytes, with ROOM where fewer will do, and address. */
void tidemark_torch_add_turn(void *follower, uint64_t n_places, const uint64_t *places, uint64_t n_answers,
                             const uint64_t *answers, uint64_t n_made, const uint64_t *made) {
    Turn turn;
    for (uint64_t i = 0; i < n_places; i++) turn.places.push_back({places[2 * i], places[2 * i + 1]});
    for (uint64_t i = 0; i < n_made; i++) turn.made.push_back({made[2 * i], made[2 * i + 1]});
    for (uint64_t i = 0; i < n_answers; i++)
        turn.answers.push_back({answers[2 * i] & ~ROOM, reinterpret_cast<void *>(answers[2 * i + 1]), answers[2 * i] >= ROOM});
    static_cast<Follower *>(follower)->turns.push_back(std::move(turn));
}

/* Outside replays these slots lie where they were put, wherever the plan has them. */
void tidemark_torch_let_stay(void *follower, uint64_t n, const uint64_t *slots) {
    for (uint64_t i = 0; i < n; i++) static_cast<Follower *>(follower)->stays[slots[i]] = true;
}

/* A slot's storage and where it is to lie; 1 if it does. */
int tidemark_torch_set_slot(void *follower, uint64_t slot, uint64_t cdata, uint64_t address) {
    static_cast<Follower *>(follower)->slots[slot] = {cdata, address};
    return reinterpret_cast<uint64_t>(data_of(storage_of(cdata)).get()) == address;
}

/* A slot's storage, which gets this address in the arena, 0: none. */
void tidemark_torch_put(void *follower, uint64_t slot, uint64_t cdata, uint64_t address) {
    bind(storage_of(cdata), address);
    static_cast<Follower *>(follower)->slots[slot] = {cdata, address};
}

/* These slots have no storages until the next step makes them. Who still holds one that had ended in the recorded step, and is
 * below the number of slots here, finds no bytes in it: they may be another's by now. */
void tidemark_torch_forget_slots(void *follower, uint64_t n, const uint64_t *slots) {
    auto *f = static_cast<Follower *>(follower);
    for (uint64_t i = 0; i < n; i++) {
        Slot &slot = f->slots[slots[i] % f->slots.size()];
        if (slots[i] < f->slots.size() && slot.cdata) {
            c10::StorageImpl *storage = storage_of(slot.cdata);
            bool planned = data_of(storage).get_deleter() == &leave && data_of(storage).get();
            if (planned && c10::raw::intrusive_ptr::use_count(storage) > 1) bind(storage, 0);
        }
        slot = {};
    }
}

/* The turn is next: its transfers are complete, its operands are in place, and what allocates now is its op. The status of
 * the run. */
int tidemark_torch_begin_turn(void *follower, uint64_t index) {
    auto *f = static_cast<Follower *>(follower);
    const Turn &turn = f->turns[index];
    int status = f->pull(f->run, f->call);
    if (status) return status;
    for (const Place &p : turn.places) {
        Slot &slot = f->slots[p.slot];
        if (slot.address == p.address || f->stays[p.slot]) continue;
        slot.address = p.address;
        bind(storage_of(slot.cdata), p.address);
    }
    arm(turn.answers.data(), turn.answers.size());
    return 0;
}

/* In a replay: the turn before is computed, and this one begins as above. Storages last from step to step, so those whose bytes
 * have left keep their addresses: nobody looks at them. -1: the op before allocated otherwise than planned; the caller puts its
 * results in place, disarms and calls again. The index after the last turn ends that one. */
int tidemark_torch_next_turn(void *follower, uint64_t index) {
    auto *f = static_cast<Follower *>(follower);
    auto place = [f](const Place &p) {
        Slot &slot = f->slots[p.slot];
        if (!p.address || slot.address == p.address) return;
        slot.address = p.address;
        bind(storage_of(slot.cdata), p.address);
    };
    if (n_given != n_answers) return -1;
    if (index)
        for (const Place &p : f->turns[index - 1].made) place(p);
    arm(nullptr, 0);
    if (index == f->turns.size()) return 0;
    const Turn &turn = f->turns[index];
    int status = f->pull(f->run, f->call);
    if (status) return status;
    for (const Place &p : turn.places) place(p);
    arm(turn.answers.data(), turn.answers.size());
    return 0;
}

/* A storage gets ordinary memory, or in online steps a block of the heap, whose bytes the caller fills; its address. 0: the
 * heap has no room, and says why. */
uint64_t tidemark_torch_adopt(uint64_t cdata) {
    c10::StorageImpl *storage = storage_of(cdata);
    if (mode == Mode::ONLINE && storage->nbytes() > SMALL_BYTES) try {
            c10::DataPtr memory = allocate_online(storage->nbytes(), 0);
            void *address = memory.get();
            set_data(storage, std::move(memory));
            know_storage(pinned.back(), storage);
            return reinterpret_cast<uint64_t>(address);
        } catch (const c10::Error &) {
            return 0;
        }
    set_data(storage, c10::GetDefaultCPUAllocator()->allocate(storage->nbytes()));
    return reinterpret_cast<uint64_t>(data_of(storage).get());
}

uint64_t tidemark_torch_address(uint64_t cdata) { return reinterpret_cast<uint64_t>(data_of(storage_of(cdata)).get()); }

/* The heap of online steps; self NULL: there is none any more. */
void tidemark_torch_heap(void *self, void *allocate, void *pin, void *unpin, void *release, void *borrow,
                         void *last_error) {
    heap = {self,
            reinterpret_cast<int (*)(void *, uint64_t, uint64_t *, void **)>(allocate),
            reinterpret_cast<int (*)(void *, uint64_t, void **)>(pin),
            reinterpret_cast<void (*)(void *, uint64_t)>(unpin),
            reinterpret_cast<void (*)(void *, uint64_t)>(release),
            reinterpret_cast<int (*)(void *, uint32_t, uint64_t, uint64_t *)>(borrow),
            reinterpret_cast<const char *(*)(void)>(last_error)};
}

void *tidemark_torch_moved(void) { return reinterpret_cast<void *>(&note_move); }

/* Before an op of an online step: its storages are in memory and stay there. import: 0 for those that are left where they are
 * unless they are of the heap, 1 for those that move into it first, 2 + n for value n of its source, to be borrowed.
 * 0 if that does not fit; then the heap says why. */
int tidemark_torch_begin_op(uint64_t n, const uint64_t *cdatas, const uint64_t *import) {
    try {
        for (uint64_t i = 0; i < n; i++)
            if (data_of(storage_of(cdatas[i])).get()) pin_storage(storage_of(cdatas[i]));
        for (uint64_t i = 0; i < n; i++) {
            if (import[i] == 1) import_storage(storage_of(cdatas[i]));
            if (import[i] > 1) borrow_storage(storage_of(cdatas[i]), static_cast<uint32_t>(import[i] - 2));
            pin_storage(storage_of(cdatas[i]));
        }
        return 1;
    } catch (const c10::Error &) {
        return 0;
    }
}

/* After it, with the storages it returned and whether they stay in memory: those move out of the heap. What nobody has seen as a
 * storage stays where it is. */
void tidemark_torch_end_op(uint64_t n, const uint64_t *cdatas, const uint64_t *stay) {
    uint64_t block;
    for (uint64_t i = 0; i < n; i++) {
        if (!block_of(storage_of(cdatas[i]), &block)) continue;
        know_storage(block, storage_of(cdatas[i]));
        if (stay[i]) move_out(block, storage_of(cdatas[i]));
    }
    std::vector<uint64_t> later;
    for (uint64_t pin : pinned) {
        bool known;
        {
            std::lock_guard<std::mutex> guard(lock);
            auto found = held.find(pin);
            if (found == held.end()) continue;
            known = found->second.storage != nullptr;
        }
        if (known)
            heap.unpin(heap.self, pin);
        else
            later.push_back(pin);
    }
    pinned = std::move(later);
}

/* A storage of the heap is in memory, until its bytes are given back; 1 unless it cannot be. */
int tidemark_torch_fetch(uint64_t cdata) {
    uint64_t block;
    void *address;
    return !block_of(storage_of(cdata), &block) || heap.pin(heap.self, block, &address) == 0;
}

/* What was ordinary memory before it moved goes back to the system. */
void tidemark_torch_trim(void) { malloc_trim(0); }

/* All storages of the heap get ordinary memory, those that are borrowed have no bytes any more; 1 unless one could not be read.
 * Those in memory go first, which makes room for the others even if the disk is full. */
int tidemark_torch_leave_heap(void) {
    for (;;) {
        c10::StorageImpl *storage = nullptr;
        bool borrowed = false;
        {
            std::lock_guard<std::mutex> guard(lock);
            for (auto &[block, h] : held)
                if (h.storage && (!storage || h.address)) storage = h.storage, borrowed = h.borrowed;
        }
        if (!storage) break;
        if (borrowed) {
            set_data(storage, no_bytes());
            continue;
        }
        if (!tidemark_torch_fetch(reinterpret_cast<uint64_t>(storage))) return 0;
        c10::DataPtr memory = c10::GetDefaultCPUAllocator()->allocate(storage->nbytes());
        std::memcpy(memory.get(), data_of(storage).get(), storage->nbytes());
        set_data(storage, std::move(memory));
    }
    pinned.clear();
    return 1;
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
