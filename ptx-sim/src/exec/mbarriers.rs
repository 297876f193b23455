//! Mbarrier objects.

use crate::exec::lanes::WARP;
use crate::exec::op::{Mbarrier, MbarrierOp, NONE};
use crate::exec::run::{Exec, Next};
use crate::exec::state::{MbarrierState, lanes_of};
use crate::report::FaultKind;

/// The largest count of an mbarrier object.
const MOST: u32 = (1 << 20) - 1;

impl Exec<'_> {
    /// Operations on mbarrier objects: the lanes come one after the other.
    pub(crate) fn mbarrier(&mut self, op: &Mbarrier, mask: u32) -> Next {
        if op.op == MbarrierOp::PendingCount {
            let known = self.defined(op.source);
            let counts = self.value(op.source).map(|token| token & u64::from(MOST));
            self.set(op.result, mask, known, &counts);
            return Next::Follow;
        }
        self.need_defined(op.base, mask);
        if op.source != NONE {
            self.need_defined(op.source, mask);
        }
        let bases = *self.value(op.base);
        let mut failed = false;
        for lane in lanes_of(mask) {
            let address = bases[lane].wrapping_add_signed(op.offset);
            let Some(at) = self.shared_place(op.window, address, 8, lane, true) else { continue };
            let source = if op.source == NONE { 1 } else { self.value(op.source)[lane] };
            let result = self.mbarrier_lane(op.op, at as u64, source, lane);
            if let Some(result) = result
                && op.result != NONE
            {
                failed |= result == 0;
                self.set(op.result, 1 << lane, 1 << lane, &[result; WARP]);
            }
        }
        let tests = matches!(op.op, MbarrierOp::Test | MbarrierOp::TestParity);
        if tests && failed {
            self.grid.spins += 1;
            if op.waits {
                return Next::Yield;
            }
        }
        Next::Follow
    }

    fn mbarrier_lane(&mut self, op: MbarrierOp, at: u64, source: u64, lane: usize) -> Option<u64> {
        if op == MbarrierOp::Init {
            self.init_mbarrier(at, source as u32, lane);
            return None;
        }
        if !self.block.mbarriers.contains_key(&at) {
            self.fault(FaultKind::InvalidUse, lane, 8, Some(at as i64), || {
                format!("there is no mbarrier object at shared byte {at}: it was not initialised")
            });
            return Some(1);
        }
        match op {
            MbarrierOp::Arrive { expect, drop } => {
                if expect {
                    self.state(at).transactions += i64::from(source as u32);
                }
                let count = if expect { 1 } else { source as u32 };
                Some(self.arrive_at(at, count, drop, lane))
            }
            MbarrierOp::ExpectTransaction => {
                self.state(at).transactions += i64::from(source as u32);
                None
            }
            MbarrierOp::CompleteTransaction => {
                self.state(at).transactions -= i64::from(source as u32);
                self.flip(at);
                None
            }
            MbarrierOp::CopyArrive { counted } => {
                self.land(1 << lane, |_, _| true);
                // An arrival that is not counted in the object's own count adds one to it first.
                if !counted {
                    self.state(at).pending += 1;
                }
                self.arrive_at(at, 1, false, lane);
                None
            }
            MbarrierOp::Test => Some(self.test(at, source >> 20, lane)),
            MbarrierOp::TestParity => {
                let phase = self.state(at).phase;
                // The phase of this parity is complete if the current one has the other parity.
                let asked = if phase & 1 == source & 1 { phase } else { phase.wrapping_sub(1) };
                Some(self.test(at, asked, lane))
            }
            MbarrierOp::Invalidate => {
                self.block.mbarriers.remove(&at);
                None
            }
            MbarrierOp::Init | MbarrierOp::PendingCount => None,
        }
    }

    fn state(&mut self, at: u64) -> &mut MbarrierState {
        self.block.mbarriers.entry(at).or_insert(MbarrierState {
            expected: 1,
            pending: 1,
            transactions: 0,
            phase: 0,
            told: None,
            told_before: None,
        })
    }

    fn init_mbarrier(&mut self, at: u64, count: u32, lane: usize) {
        if count == 0 || count > MOST {
            self.fault(FaultKind::InvalidUse, lane, 9, Some(at as i64), || {
                format!("an mbarrier object for {count} arrivals: 1 to {MOST} are possible")
            });
        }
        // The object is written: others have to be told before they use it.
        let place = crate::exec::resolve::Location::Shared(at as usize);
        self.write(place, &u64::from(count).to_le_bytes(), lane, true);
        let state = MbarrierState {
            expected: count.max(1),
            pending: count.max(1),
            transactions: 0,
            phase: 0,
            told: None,
            told_before: None,
        };
        self.block.mbarriers.insert(at, state);
        self.grid.progress();
    }

    /// A thread arrives; gives the token of the phase, with the phase above twenty bits of pending count.
    fn arrive_at(&mut self, at: u64, count: u32, drop: bool, lane: usize) -> u64 {
        let thread = self.thread(lane);
        let told = self.block.clocks.told_by(thread);
        let state = self.state(at);
        let token = state.phase << 20 | u64::from(state.pending);
        match &mut state.told {
            None => state.told = Some(told),
            Some(all) => all.add(&told),
        }
        let too_many = count > state.pending;
        state.pending = state.pending.saturating_sub(count);
        if drop {
            state.expected = state.expected.saturating_sub(count);
        }
        if too_many {
            self.fault(FaultKind::InvalidUse, lane, 10, Some(at as i64), || {
                format!("{count} arrivals at an mbarrier object that waits for fewer")
            });
        }
        self.grid.progress();
        self.flip(at);
        token
    }

    /// The phase ends when nobody and nothing is waited for.
    fn flip(&mut self, at: u64) {
        let state = self.state(at);
        if state.pending == 0 && state.transactions == 0 {
            state.phase += 1;
            state.pending = state.expected;
            state.told_before = state.told.take();
            self.grid.progress();
        }
    }

    /// Whether a phase is complete; the thread then knows what those did that arrived in it.
    fn test(&mut self, at: u64, phase: u64, lane: usize) -> u64 {
        let state = self.state(at);
        let complete = state.phase != phase;
        let told = state.told_before.clone();
        if complete && let Some(told) = told {
            let thread = self.thread(lane);
            self.block.clocks.learn(thread, &told);
        }
        u64::from(complete)
    }
}
