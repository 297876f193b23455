//! Views of threads: up to which time they know what others did.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::exec::lanes::WARP;

/// Up to which time a thread knows what each thread of its block, and threads of other blocks, did.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// By thread of the block; a warp always takes 32 places.
    own: Box<[u32]>,
    /// By block, then by thread.
    others: Option<Rc<FxHashMap<u32, Box<[u32]>>>>,
}

impl View {
    fn new(threads: usize) -> View {
        View { own: vec![0; threads].into_boxed_slice(), others: None }
    }

    /// Whether what a thread of the own block did at this time is known.
    #[inline]
    pub(crate) fn knows(&self, thread: usize, time: u32) -> bool {
        self.own[thread] >= time
    }

    /// The same for a thread of another block.
    pub(crate) fn knows_of(&self, block: u32, thread: usize, time: u32) -> bool {
        let Some(others) = &self.others else { return false };
        others.get(&block).is_some_and(|times| times[thread] >= time)
    }

    fn merge(&mut self, other: &View) {
        for (mine, theirs) in self.own.iter_mut().zip(&other.own) {
            *mine = (*mine).max(*theirs);
        }
        if let Some(theirs) = &other.others {
            self.merge_others(theirs);
        }
    }

    fn merge_others(&mut self, theirs: &Rc<FxHashMap<u32, Box<[u32]>>>) {
        match &mut self.others {
            None => self.others = Some(theirs.clone()),
            Some(mine) if Rc::ptr_eq(mine, theirs) => {}
            Some(mine) => {
                let mine = Rc::make_mut(mine);
                for (block, times) in theirs.iter() {
                    merge_times(mine, *block, times);
                }
            }
        }
    }
}

fn merge_times(all: &mut FxHashMap<u32, Box<[u32]>>, block: u32, times: &[u32]) {
    match all.get_mut(&block) {
        None => {
            all.insert(block, times.into());
        }
        Some(mine) => {
            for (mine, theirs) in mine.iter_mut().zip(times) {
                *mine = (*mine).max(*theirs);
            }
        }
    }
}

/// Times and views of the threads of one block.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    block: u32,
    /// The time of each warp: it goes on whenever a thread of the warp tells others what it did.
    times: Vec<u32>,
    views: Vec<Rc<View>>,
    /// The view of each thread at its last fence, which its strong writes publish.
    fenced: FxHashMap<usize, Rc<View>>,
    /// The views that strong reads of a thread have seen, to be known after its next fence.
    seen: FxHashMap<usize, Published>,
}

/// The knowledge that a thread published: its block and its view.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    block: u32,
    view: Rc<View>,
}

/// The knowledge published through each address of memory.
pub(crate) type Publications = FxHashMap<(u8, u64), Published>;

impl Clocks {
    pub(crate) fn new(block: u32, warps: usize) -> Clocks {
        let view = Rc::new(View::new(warps * WARP));
        Clocks {
            block,
            times: vec![1; warps],
            views: vec![view; warps * WARP],
            fenced: FxHashMap::default(),
            seen: FxHashMap::default(),
        }
    }

    #[inline]
    pub(crate) fn time(&self, warp: usize) -> u32 {
        self.times[warp]
    }

    /// Whether all lanes of a warp share one view.
    #[inline]
    pub(crate) fn is_whole(&self, warp: usize) -> bool {
        let views = &self.views[warp * WARP..(warp + 1) * WARP];
        views.iter().all(|view| Rc::ptr_eq(view, &views[0]))
    }

    #[inline]
    pub(crate) fn view(&self, thread: usize) -> &View {
        &self.views[thread]
    }

    /// Threads meet: all that receive know what all of them did. Threads that only arrive tell, but learn nothing.
    pub(crate) fn meet(&mut self, tell: &[u32], learn: &[u32]) {
        // `tell` and `learn` have one mask of lanes for each warp. A barrier is a fence as well: kernels whose last block reads
        // what the others counted down for rely on it.
        if !self.seen.is_empty() {
            for thread in threads(tell) {
                if let Some(seen) = self.seen.remove(&thread) {
                    self.learn(thread, &seen);
                }
            }
        }
        let mut distinct: Vec<Rc<View>> = Vec::new();
        for thread in threads(tell) {
            let view = &self.views[thread];
            if !distinct.iter().rev().any(|known| Rc::ptr_eq(known, view)) {
                distinct.push(view.clone());
            }
        }
        let Some(first) = distinct.first() else { return };
        let mut joined = View::clone(first);
        for view in &distinct[1..] {
            joined.merge(view);
        }
        for thread in threads(tell) {
            joined.own[thread] = self.times[thread / WARP];
        }
        for (warp, mask) in tell.iter().enumerate() {
            if *mask != 0 {
                self.times[warp] += 1;
            }
        }
        let joined = Rc::new(joined);
        for thread in threads(learn) {
            let tells = tell[thread / WARP] >> (thread % WARP) & 1 != 0;
            if tells {
                self.views[thread] = joined.clone();
            } else {
                Rc::make_mut(&mut self.views[thread]).merge(&joined);
            }
        }
    }

    /// Lanes of one warp meet.
    pub(crate) fn meet_lanes(&mut self, warp: usize, lanes: u32) {
        let mut masks = vec![0; self.times.len()];
        masks[warp] = lanes;
        self.meet(&masks, &masks);
    }

    /// The view of a thread with all that it did until now; its time advances.
    pub(crate) fn publish(&mut self, thread: usize) -> Rc<View> {
        let warp = thread / WARP;
        let mut view = View::clone(&self.views[thread]);
        view.own[thread] = self.times[warp];
        self.times[warp] += 1;
        Rc::new(view)
    }

    /// A fence: what was done until now is told by the thread's strong writes, what its strong reads saw is known.
    pub(crate) fn fence(&mut self, thread: usize) {
        if let Some(seen) = self.seen.remove(&thread) {
            self.learn(thread, &seen);
        }
        let view = self.publish(thread);
        self.fenced.insert(thread, view);
    }

    /// A strong write to a place: with release it tells everything until now, otherwise everything until the last fence.
    pub(crate) fn tell(&mut self, thread: usize, release: bool, place: (u8, u64), all: &mut Publications) {
        let view = if release { Some(self.publish(thread)) } else { self.fenced.get(&thread).cloned() };
        let Some(view) = view else { return };
        let told = Published { block: self.block, view };
        match all.get(&place).cloned() {
            // A chain of atomic operations goes on telling what the earlier ones told.
            Some(earlier) => {
                let mut sum = Clocks::scratch(self.block, View::clone(&told.view));
                sum.absorb(&earlier);
                let view = Rc::new(sum.view);
                all.insert(place, Published { block: self.block, view });
            }
            None => {
                all.insert(place, told);
            }
        }
    }

    /// A strong read of a place: with acquire the thread knows what was told there, otherwise after its next fence.
    pub(crate) fn hear(&mut self, thread: usize, acquire: bool, place: (u8, u64), all: &Publications) {
        let Some(told) = all.get(&place) else { return };
        if acquire {
            self.learn(thread, told);
            return;
        }
        match self.seen.get_mut(&thread) {
            None => {
                self.seen.insert(thread, told.clone());
            }
            Some(seen) => {
                let mut sum = Clocks::scratch(seen.block, View::clone(&seen.view));
                sum.absorb(told);
                seen.view = Rc::new(sum.view);
            }
        }
    }

    /// The thread knows what another told.
    pub(crate) fn learn(&mut self, thread: usize, told: &Published) {
        let mut sum = Clocks::scratch(self.block, View::clone(&self.views[thread]));
        sum.absorb(told);
        self.views[thread] = Rc::new(sum.view);
    }

    /// Publishes the view of a thread with all that it did until now.
    pub(crate) fn told_by(&mut self, thread: usize) -> Published {
        Published { block: self.block, view: self.publish(thread) }
    }

    fn scratch(block: u32, view: View) -> Sum {
        Sum { block, view }
    }
}

impl Published {
    /// Adds what another thread of the same block tells.
    pub(crate) fn add(&mut self, other: &Published) {
        let mut sum = Clocks::scratch(self.block, View::clone(&self.view));
        sum.absorb(other);
        self.view = Rc::new(sum.view);
    }
}

/// A view of a thread of a block that is being added to.
struct Sum {
    block: u32,
    view: View,
}

impl Sum {
    fn absorb(&mut self, told: &Published) {
        if told.block == self.block {
            self.view.merge(&told.view);
            return;
        }
        let mut others = self.view.others.take().map_or_else(FxHashMap::default, |all| {
            Rc::try_unwrap(all).unwrap_or_else(|all| FxHashMap::clone(&all))
        });
        merge_times(&mut others, told.block, &told.view.own);
        for (block, times) in told.view.others.iter().flat_map(|all| all.iter()) {
            if *block == self.block {
                for (mine, theirs) in self.view.own.iter_mut().zip(times.iter()) {
                    *mine = (*mine).max(*theirs);
                }
            } else {
                merge_times(&mut others, *block, times);
            }
        }
        self.view.others = Some(Rc::new(others));
    }
}

/// Threads of masks by warp.
fn threads(masks: &[u32]) -> impl Iterator<Item = usize> + '_ {
    masks.iter().enumerate().flat_map(|(warp, mask)| {
        (0..WARP).filter(move |lane| mask >> lane & 1 != 0).map(move |lane| warp * WARP + lane)
    })
}
