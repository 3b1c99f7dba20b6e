/* The allocator that PyTorch asks for CPU memory while a step runs under Tidemark, and the ways to give a storage other
 * bytes under its tensors. Built on first use against the PyTorch that is there; needs libc10 alone.
 *
 * A thread is in one of five modes. Outside of steps everything goes to PyTorch's own allocator, untouched. Recording:
 * the same, but every allocation and release is noted. Online: noted as well, and all memory but the smallest comes from a heap of
 * the library, whose blocks may leave to disk while no op uses their storages. Planned: the allocations of the op at hand are answered with the
 * addresses that a plan has for them; what it has none for lies in the annex, a few bytes of the budget beside the arena. What finds no
 * room there either comes from PyTorch's own allocator and is counted. Empty: what is allocated has no bytes.
 *
 * Invariant: a DataPtr with the deleter `leave` points into an arena (or nowhere) and owns nothing. */
#include "allocator_heap.h"
#include "allocator_modes.h"

#include <malloc.h>

namespace {

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
