//! Who accessed each granule of memory.

use crate::exec::lanes::WARP;
use crate::race::clock::View;

/// Cells of a page.
const PAGE: usize = 1024;

/// How many unordered readers are remembered for a granule. A kernel's input is read by all blocks, and need not be remembered by each.
const MOST_READERS: usize = 64;

/// No list of readers.
const END: u32 = u32::MAX;

/// A thread and its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Stamp {
    /// The warp, counted over the whole grid.
    pub(crate) warp: u32,
    pub(crate) lane: u8,
    pub(crate) time: u32,
    pub(crate) line: u32,
}

/// Who accesses now.
pub(crate) struct Accessor<'a> {
    pub(crate) stamp: Stamp,
    pub(crate) view: &'a View,
    /// The first warp of its block, and how many a block has.
    pub(crate) first_warp: u32,
    pub(crate) warps: u32,
    pub(crate) strong: bool,
    /// Whether all lanes of the warp know the same.
    pub(crate) whole: bool,
}

impl Accessor<'_> {
    /// The first of several lanes for which a write did not happen before now. Where all lanes know the same, only the writer
    /// itself can know more.
    #[inline]
    fn first_before(&self, write: Stamp, reading: u32) -> Option<u8> {
        if self.whole {
            if self.knows(write.warp, write.lane, write.time) {
                return None;
            }
            let others = if write.warp == self.stamp.warp { reading & !(1 << write.lane) } else { reading };
            return (others != 0).then(|| others.trailing_zeros() as u8);
        }
        debug_assert!(reading == 1 << self.stamp.lane);
        (!self.is_after(write.warp, write.lane, write.time)).then_some(self.stamp.lane)
    }

    /// Whether what this thread did at that time happened before now.
    #[inline]
    fn is_after(&self, warp: u32, lane: u8, time: u32) -> bool {
        warp == self.stamp.warp && lane == self.stamp.lane || self.knows(warp, lane, time)
    }

    /// The same for what its own lane did, if others tell it.
    #[inline]
    fn knows(&self, warp: u32, lane: u8, time: u32) -> bool {
        let own = warp.wrapping_sub(self.first_warp);
        if own < self.warps {
            return self.view.knows(own as usize * WARP + lane as usize, time);
        }
        let thread = (warp % self.warps) as usize * WARP + lane as usize;
        self.view.knows_of(warp / self.warps, thread, time)
    }
}

/// Which accesses are not ordered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ConflictKind {
    /// A read of what another thread writes.
    ReadAfterWrite,
    /// A write of what another thread reads.
    WriteAfterRead,
    /// Two writes.
    WriteAfterWrite,
    /// Two writes of the same value, which do no harm.
    RedundantWrite,
    /// An access to the target of an asynchronous copy that is not waited for.
    InFlight,
}

/// An access that is not ordered with an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Conflict {
    pub(crate) kind: ConflictKind,
    pub(crate) earlier: Stamp,
    /// Offset of the granule.
    pub(crate) offset: usize,
}

/// Readers of one warp at one time.
#[derive(Clone, Copy, Debug)]
struct Readers {
    warp: u32,
    time: u32,
    line: u32,
    lanes: u32,
    next: u32,
    strong: bool,
}

const NOBODY: Readers = Readers { warp: 0, time: 0, line: 0, lanes: 0, next: END, strong: false };

/// The accesses that are remembered for a granule.
#[derive(Clone, Copy, Debug)]
struct Cell {
    write: Stamp,
    /// Time 0: nobody wrote.
    strong_write: bool,
    in_flight: bool,
    readers: Readers,
}

const UNTOUCHED: Cell = Cell {
    write: Stamp { warp: 0, lane: 0, time: 0, line: 0 },
    strong_write: false,
    in_flight: false,
    readers: NOBODY,
};

/// The accesses to a piece of memory. Granules have four bytes until a smaller access comes.
#[derive(Clone, Debug)]
pub(crate) struct Shadow {
    pages: Vec<Option<Box<[Cell]>>>,
    /// Bytes of a granule, as a power of two.
    granule: u32,
    more: Vec<Readers>,
    free: Vec<u32>,
}

impl Default for Shadow {
    fn default() -> Shadow {
        Shadow { pages: Vec::new(), granule: 2, more: Vec::new(), free: Vec::new() }
    }
}

impl Shadow {
    /// Makes granules so small that an access covers whole ones.
    #[inline]
    fn fit(&mut self, offset: usize, bytes: usize) {
        let wanted = (offset | bytes).trailing_zeros();
        while wanted < self.granule {
            self.split();
        }
    }

    fn split(&mut self) {
        let pages = std::mem::take(&mut self.pages);
        for page in pages {
            match page {
                None => self.pages.extend([None, None]),
                Some(cells) => {
                    for half in cells.chunks(PAGE / 2) {
                        let doubled = half.iter().flat_map(|cell| [*cell, *cell]);
                        // Each half has lists of its own, since lists are freed by their cells.
                        let cells: Vec<Cell> = doubled.collect();
                        self.pages.push(Some(cells.into_boxed_slice()));
                    }
                }
            }
        }
        self.granule -= 1;
        self.unshare();
    }

    /// Copies the lists of readers of every second cell.
    fn unshare(&mut self) {
        let mut pages = std::mem::take(&mut self.pages);
        for cells in pages.iter_mut().flatten() {
            for cell in cells.iter_mut().skip(1).step_by(2) {
                let mut from = cell.readers.next;
                let mut copied = Vec::new();
                while from != END {
                    copied.push(self.more[from as usize]);
                    from = self.more[from as usize].next;
                }
                cell.readers.next = END;
                for readers in copied.into_iter().rev() {
                    let next = cell.readers.next;
                    cell.readers.next = self.add(Readers { next, ..readers });
                }
            }
        }
        self.pages = pages;
    }

    fn add(&mut self, readers: Readers) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.more[place as usize] = readers;
                place
            }
            None => {
                self.more.push(readers);
                self.more.len() as u32 - 1
            }
        }
    }

    fn cell(&mut self, number: usize) -> &mut Cell {
        let page = number / PAGE;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let cells = self.pages[page].get_or_insert_with(|| vec![UNTOUCHED; PAGE].into_boxed_slice());
        &mut cells[number % PAGE]
    }

    /// Remembers a read of one place by several lanes of a warp, of which the accessor's is the first; says with what it races,
    /// and which lane does.
    #[inline]
    pub(crate) fn read(
        &mut self,
        offset: usize,
        bytes: usize,
        by: &Accessor<'_>,
        lanes: u32,
    ) -> Option<(Conflict, u8)> {
        self.fit(offset, bytes);
        let mut conflict = None;
        for number in offset >> self.granule..(offset + bytes) >> self.granule {
            conflict = self.read_cell(number, by, lanes).or(conflict);
        }
        conflict
    }

    #[inline]
    fn read_cell(&mut self, number: usize, by: &Accessor<'_>, lanes: u32) -> Option<(Conflict, u8)> {
        let offset = number << self.granule;
        let cell = self.cell(number);
        let write = cell.write;
        let mut conflict = None;
        if write.time != 0 {
            if cell.in_flight {
                let kind = ConflictKind::InFlight;
                conflict = Some((Conflict { kind, earlier: write, offset }, by.stamp.lane));
            } else if !(cell.strong_write && by.strong)
                && let Some(lane) = by.first_before(write, lanes)
            {
                let kind = ConflictKind::ReadAfterWrite;
                conflict = Some((Conflict { kind, earlier: write, offset }, lane));
            }
        }
        let me = by.stamp;
        let readers = &mut cell.readers;
        let replaces = readers.warp == me.warp && readers.next == END && readers.lanes & !lanes == 0;
        if readers.lanes == 0 || replaces {
            let next = readers.next;
            *readers =
                Readers { warp: me.warp, time: me.time, line: me.line, lanes, next, strong: by.strong };
        } else if readers.warp == me.warp && readers.time == me.time && readers.strong == by.strong {
            readers.lanes |= lanes;
            readers.line = me.line;
        } else {
            self.read_more(number, by, lanes);
        }
        conflict
    }

    /// Remembers a read beside those of other warps, or of other times.
    fn read_more(&mut self, number: usize, by: &Accessor<'_>, reading: u32) {
        let me = by.stamp;
        let mut head = self.cell(number).readers;
        let mut at = head.next;
        let mut count = 0;
        while at != END {
            let readers = &mut self.more[at as usize];
            if readers.warp == me.warp && readers.time == me.time && readers.strong == by.strong {
                readers.lanes |= reading;
                readers.line = me.line;
                return;
            }
            at = readers.next;
            count += 1;
        }
        let new = Readers {
            warp: me.warp,
            time: me.time,
            line: me.line,
            lanes: reading,
            next: head.next,
            strong: by.strong,
        };
        // Accesses that happened before this read need not be remembered beside it.
        let alone = reading & (reading - 1) == 0;
        let ordered =
            (alone || by.whole) && lanes(head.lanes).all(|lane| by.is_after(head.warp, lane, head.time));
        if ordered || count >= MOST_READERS {
            self.cell(number).readers = new;
            return;
        }
        head.next = new.next;
        let place = self.add(head);
        self.cell(number).readers = Readers { next: place, ..new };
    }

    /// Remembers a write, and says with what it races. Two writes of the same value do not race: `same` says that the memory
    /// already holds it.
    #[inline]
    pub(crate) fn write(
        &mut self,
        offset: usize,
        bytes: usize,
        by: &Accessor<'_>,
        same: bool,
    ) -> Option<Conflict> {
        self.fit(offset, bytes);
        let mut conflict = None;
        for number in offset >> self.granule..(offset + bytes) >> self.granule {
            conflict = self.write_cell(number, by, same).or(conflict);
        }
        conflict
    }

    fn write_cell(&mut self, number: usize, by: &Accessor<'_>, same: bool) -> Option<Conflict> {
        let offset = number << self.granule;
        let cell = *self.cell(number);
        let write = cell.write;
        let mut conflict = None;
        if write.time != 0 {
            if cell.in_flight {
                conflict = Some(Conflict { kind: ConflictKind::InFlight, earlier: write, offset });
            } else if !(cell.strong_write && by.strong || by.is_after(write.warp, write.lane, write.time)) {
                let kind = if same { ConflictKind::RedundantWrite } else { ConflictKind::WriteAfterWrite };
                conflict = Some(Conflict { kind, earlier: write, offset });
            }
        }
        if cell.readers.lanes != 0 {
            let earlier = self.unordered_reader(cell.readers, by);
            if let Some(earlier) = earlier {
                conflict = Some(Conflict { kind: ConflictKind::WriteAfterRead, earlier, offset });
            }
            let mut at = cell.readers.next;
            while at != END {
                self.free.push(at);
                at = self.more[at as usize].next;
            }
        }
        let new =
            Cell { write: by.stamp, strong_write: by.strong, in_flight: cell.in_flight, readers: NOBODY };
        *self.cell(number) = new;
        conflict
    }

    fn unordered_reader(&self, mut readers: Readers, by: &Accessor<'_>) -> Option<Stamp> {
        loop {
            if !(readers.strong && by.strong) {
                let lane = lanes(readers.lanes).find(|lane| !by.is_after(readers.warp, *lane, readers.time));
                if let Some(lane) = lane {
                    return Some(Stamp { warp: readers.warp, lane, time: readers.time, line: readers.line });
                }
            }
            if readers.next == END {
                return None;
            }
            readers = self.more[readers.next as usize];
        }
    }

    /// Marks the target of an asynchronous copy, or the end of one.
    pub(crate) fn set_in_flight(&mut self, offset: usize, bytes: usize, in_flight: bool) {
        self.fit(offset, bytes);
        for number in offset >> self.granule..(offset + bytes) >> self.granule {
            self.cell(number).in_flight = in_flight;
        }
    }
}

fn lanes(mask: u32) -> impl Iterator<Item = u8> {
    (0..WARP as u8).filter(move |lane| mask >> lane & 1 != 0)
}
