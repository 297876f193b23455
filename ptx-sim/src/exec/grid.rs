//! Running a grid: which block and which warp runs next.

use rustc_hash::FxHashMap;

use crate::exec::barriers;
use crate::exec::build::link::Linked;
use crate::exec::lanes::WARP;
use crate::exec::random::Random;
use crate::exec::run::Exec;
use crate::exec::state::{BarrierState, Block, Group, Wait, Warp};
use crate::memory::Memory;
use crate::memory::shared::Shared;
use crate::program::VariableId;
use crate::race::{Clocks, Publications};
use crate::report::{Collector, FaultKind, Spot, Traffic};

/// The number of blocks that run beside each other; more run only where these wait for others.
const RESIDENT: usize = 4;

/// Steps that a block runs before another one does.
const SLICE: u64 = 1 << 16;

/// Steps without any change of memory or of a barrier after which threads that wait in loops count as stuck.
const QUIET: u64 = 1_000_000;

/// The data that all blocks of a launch share.
pub(crate) struct Grid {
    pub(crate) memory: Memory,
    pub(crate) collector: Collector,
    pub(crate) traffic: Traffic,
    pub(crate) random: Random,
    pub(crate) params: Vec<u8>,
    /// Addresses of the module's variables.
    pub(crate) variables: FxHashMap<VariableId, u64>,
    pub(crate) grid_extents: [u32; 3],
    pub(crate) block_extents: [u32; 3],
    /// Threads and warps of a block.
    pub(crate) threads: u32,
    pub(crate) warps: u32,
    pub(crate) dynamic_shared: u64,
    pub(crate) dynamic_shared_bytes: u64,
    pub(crate) shared_bytes: u64,
    pub(crate) publications: Publications,
    /// Instructions of threads.
    pub(crate) instructions: u64,
    pub(crate) limit: u64,
    /// Steps since something changed, and strong reads since then.
    pub(crate) steps_quiet: u64,
    pub(crate) spins: u64,
    pub(crate) stopped: bool,
    pub(crate) yielded: bool,
    pub(crate) check_barriers: bool,
    /// Whether operations ran whose results depend on the order of threads.
    pub(crate) order_matters: bool,
    /// How often the clock was read.
    asked: u64,
    /// Whether warps alternate in a fixed order.
    orderly: bool,
}

/// The inputs of a launch.
pub(crate) struct Setup {
    pub(crate) extents: Extents,
    pub(crate) params: Vec<u8>,
    /// Addresses of the module's variables.
    pub(crate) variables: FxHashMap<VariableId, u64>,
    pub(crate) seed: u64,
    pub(crate) limit: u64,
}

/// The extents of a launch.
pub(crate) struct Extents {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared_bytes: u64,
}

impl Grid {
    pub(crate) fn new(linked: &Linked, memory: Memory, setup: Setup, mut collector: Collector) -> Grid {
        let Setup { extents, params, variables, seed, limit } = setup;
        collector.begin(seed);
        let threads: u32 = extents.block.iter().product();
        Grid {
            memory,
            collector,
            traffic: Traffic::default(),
            random: Random(seed),
            params,
            variables,
            grid_extents: extents.grid,
            block_extents: extents.block,
            threads,
            warps: threads.div_ceil(WARP as u32),
            dynamic_shared: linked.dynamic_shared,
            dynamic_shared_bytes: extents.dynamic_shared_bytes,
            shared_bytes: linked.static_shared_bytes + extents.dynamic_shared_bytes,
            publications: Publications::default(),
            instructions: 0,
            limit,
            steps_quiet: 0,
            spins: 0,
            stopped: false,
            yielded: false,
            check_barriers: false,
            order_matters: false,
            asked: 0,
            orderly: seed == 0,
        }
    }

    /// Something changed that others may wait for.
    #[inline]
    pub(crate) fn progress(&mut self) {
        self.steps_quiet = 0;
        self.spins = 0;
    }

    /// A time that goes on while it is asked for.
    pub(crate) fn clock(&mut self) -> u64 {
        self.asked += 1;
        self.instructions / 32 + self.asked * 32
    }

    /// The place of a thread in its block.
    pub(crate) fn thread_at(&self, thread: usize) -> [u32; 3] {
        unravel(thread as u32, self.block_extents)
    }

    /// The place of a block in the grid.
    pub(crate) fn block_at(&self, block: u32) -> [u32; 3] {
        unravel(block, self.grid_extents)
    }

    /// Runs all blocks.
    pub(crate) fn run(&mut self, linked: &Linked) {
        let total: u64 = self.grid_extents.iter().map(|extent| u64::from(*extent)).product();
        let mut next: u64 = 0;
        let mut resident: Vec<Block> = Vec::new();
        let mut wanted = RESIDENT;
        let mut turn = 0;
        loop {
            while resident.len() < wanted && next < total {
                resident.push(self.start_block(linked, next as u32));
                next += 1;
            }
            if resident.is_empty() || self.stopped {
                break;
            }
            turn = if self.orderly { turn % resident.len() } else { self.random.below(resident.len()) };
            let blocked = self.run_block(linked, &mut resident[turn]);
            if blocked {
                self.report_deadlock(linked, &resident[turn]);
            }
            if blocked || resident[turn].is_done() {
                resident.swap_remove(turn);
                wanted = wanted.min(RESIDENT.max(resident.len()));
                continue;
            }
            turn += 1;
            if self.steps_quiet > QUIET && self.spins > QUIET / 1000 {
                if next < total {
                    // Others may be what these wait for.
                    wanted = resident.len() + 1;
                    self.progress();
                } else {
                    self.report_livelock(linked, &resident);
                    break;
                }
            }
            if self.instructions > self.limit {
                self.report_endless();
                break;
            }
        }
    }

    fn start_block(&mut self, linked: &Linked, index: u32) -> Block {
        let mut ranges: Vec<(u64, u64)> = linked
            .shared_variables
            .iter()
            .map(|variable| (variable.offset, variable.offset + variable.bytes))
            .collect();
        if self.dynamic_shared_bytes > 0 {
            ranges.push((self.dynamic_shared, self.dynamic_shared + self.dynamic_shared_bytes));
        }
        let mut block = Block {
            index,
            at: self.block_at(index),
            shared: Shared::new(ranges),
            warps: Vec::new(),
            barriers: std::array::from_fn(|_| BarrierState::default()),
            mbarriers: FxHashMap::default(),
            clocks: Clocks::new(index, self.warps as usize),
            publications: Publications::default(),
            last_warp: 0,
        };
        for warp in 0..self.warps {
            let threads = (self.threads - warp * WARP as u32).min(WARP as u32);
            let mask = u32::MAX >> (32 - threads);
            block.warps.push(Warp {
                index: warp,
                live: mask,
                groups: vec![Group {
                    place: 0,
                    mask,
                    scope: crate::exec::op::NONE,
                    code: 0,
                    registers: 0,
                    local: 0,
                    frames: Vec::new(),
                    wait: Wait::Nothing,
                }],
                ..Warp::default()
            });
        }
        for warp in 0..self.warps as usize {
            Exec::with(linked, self, &mut block, warp, |exec| {
                exec.begin_frame(0, 0, 0, u32::MAX);
            });
        }
        block
    }

    /// Runs a block for a while. Gives whether it can never go on.
    fn run_block(&mut self, linked: &Linked, block: &mut Block) -> bool {
        let mut left = SLICE;
        while left > 0 && !self.stopped {
            if std::mem::take(&mut self.check_barriers) {
                barriers::release(block, linked, &mut self.collector);
            }
            let Some(warp) = self.choose_warp(block) else {
                if block.is_done() {
                    return false;
                }
                barriers::release(block, linked, &mut self.collector);
                if block.warps.iter().any(Warp::is_ready) || self.unblock(linked, block) {
                    continue;
                }
                return true;
            };
            block.last_warp = warp;
            let budget = if self.orderly { 4096 } else { 1 + self.random.next() % 96 };
            let steps = Exec::run(linked, self, block, warp, budget.min(left));
            left = left.saturating_sub(steps.max(1));
        }
        if self.check_barriers {
            barriers::release(block, linked, &mut self.collector);
        }
        false
    }

    fn choose_warp(&mut self, block: &Block) -> Option<usize> {
        let count = block.warps.len();
        let first = if self.orderly { block.last_warp + 1 } else { self.random.below(count) };
        (0..count).map(|step| (first + step) % count).find(|warp| block.warps[*warp].is_ready())
    }

    /// Lets lanes go on that wait for others of their warp, which cannot come.
    fn unblock(&mut self, linked: &Linked, block: &mut Block) -> bool {
        for warp in 0..block.warps.len() {
            if block.warps[warp].break_scope() {
                return true;
            }
            if Exec::with(linked, self, block, warp, Exec::give_up_gathering) {
                return true;
            }
        }
        false
    }

    fn report_deadlock(&mut self, linked: &Linked, block: &Block) {
        let mut waiting = Vec::new();
        let mut line = 0;
        let mut thread = None;
        for warp in &block.warps {
            for group in &warp.groups {
                let at = linked.codes[group.code as usize].steps[group.place as usize].line;
                let what = match group.wait {
                    Wait::Barrier(id) => format!("barrier {id} in line {at}"),
                    _ => format!("line {at}"),
                };
                if thread.is_none() {
                    line = at;
                    let lane = group.mask.trailing_zeros() as usize;
                    thread = Some(self.thread_at(warp.index as usize * WARP + lane));
                }
                match waiting.iter_mut().find(|(known, _)| *known == what) {
                    Some((_, count)) => *count += group.mask.count_ones(),
                    None => waiting.push((what, group.mask.count_ones())),
                }
            }
        }
        let list: Vec<String> =
            waiting.iter().map(|(what, count)| format!("{count} threads at {what}")).collect();
        let exited = self.threads - block.live_threads();
        let spot = Spot { line, block: Some(block.at), thread };
        self.collector.add(FaultKind::Deadlock, spot, 0, None, || {
            format!("nobody can go on: {}; {exited} threads have exited", list.join(", "))
        });
    }

    fn report_livelock(&mut self, linked: &Linked, blocks: &[Block]) {
        let Some(block) = blocks.first() else { return };
        let place = block.warps.iter().find_map(|warp| {
            let group = warp.groups.first()?;
            let line = linked.codes[group.code as usize].steps[group.place as usize].line;
            let lane = group.mask.trailing_zeros() as usize;
            Some((line, self.thread_at(warp.index as usize * WARP + lane)))
        });
        let (line, thread) = place.unwrap_or_default();
        let spot = Spot { line, block: Some(block.at), thread: Some(thread) };
        self.collector.add(FaultKind::Livelock, spot, 0, None, || {
            "threads wait in a loop for what no thread does: nothing has changed for a million steps".into()
        });
    }

    fn report_endless(&mut self) {
        let limit = self.limit;
        self.collector.add(FaultKind::Livelock, Spot::default(), 1, None, || {
            format!("the kernel has not ended after {limit} instructions of threads")
        });
    }
}

/// A number as a place in a box, x first.
fn unravel(number: u32, extents: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = extents.map(|extent| extent.max(1));
    [number % x, number / x % y, number / x / y]
}
