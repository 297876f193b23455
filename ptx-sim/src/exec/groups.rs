//! Branches: lanes that go different ways become groups, and meet again at the end of their scope.

use crate::exec::lanes::WARP;
use crate::exec::op::{NONE, Slot};
use crate::exec::run::{Exec, Next};
use crate::exec::state::{Group, Scope, Wait, lanes_of};
use crate::report::FaultKind;

impl Exec<'_> {
    /// `bra`: the lanes of the mask go to the target.
    #[inline]
    pub(crate) fn jump(&mut self, target: u32, meet: u32, mask: u32) -> Next {
        if mask == self.group.mask {
            self.group.place = target;
            return Next::Moved;
        }
        let follow = self.group.place + 1;
        if mask == 0 {
            self.group.place = follow;
            return Next::Moved;
        }
        self.separate(&[(target, mask), (follow, self.group.mask & !mask)], meet);
        Next::Stop
    }

    /// `brx.idx`
    pub(crate) fn jump_table(&mut self, index: Slot, targets: &[u32], meet: u32, mask: u32) -> Next {
        self.need_defined(index, mask);
        let indices = *self.value(index);
        let mut parts: Vec<(u32, u32)> = Vec::new();
        for lane in lanes_of(mask) {
            let Some(target) = targets.get((indices[lane] & 0xffff_ffff) as usize) else {
                let (index, count) = (indices[lane], targets.len());
                self.fault(FaultKind::InvalidUse, lane, 0, None, || {
                    format!("index {index} in a list of {count} branch targets")
                });
                self.lose(1 << lane);
                continue;
            };
            match parts.iter_mut().find(|(place, _)| place == target) {
                Some((_, lanes)) => *lanes |= 1 << lane,
                None => parts.push((*target, 1 << lane)),
            }
        }
        let rest = self.group.mask & !mask;
        if rest != 0 {
            parts.push((self.group.place + 1, rest));
        }
        match parts[..] {
            [] => Next::Stop,
            [(place, _)] => {
                self.group.place = place;
                Next::Moved
            }
            _ => {
                self.separate(&parts, meet);
                Next::Stop
            }
        }
    }

    /// Makes groups of the parts of the running one, which has none of the lanes then.
    fn separate(&mut self, parts: &[(u32, u32)], meet: u32) {
        self.grid.traffic.diverge(self.line);
        let mut scope = self.group.scope;
        if meet != NONE {
            scope = self.warp.open_scope(Scope {
                meet,
                depth: self.group.frames.len(),
                mask: self.group.mask,
                parent: self.group.scope,
            });
        }
        for (place, mask) in parts {
            let mut part =
                Group { place: *place, mask: *mask, scope, frames: self.group.frames.clone(), ..self.group };
            if self.warp.is_at_meeting(&part) {
                part.wait = Wait::Meeting;
            }
            self.warp.groups.push(part);
        }
        self.group.mask = 0;
        self.warp.steps_apart = 0;
    }

    /// `exit`
    pub(crate) fn exit(&mut self, mask: u32) -> Next {
        self.lose(mask);
        if self.group.mask == 0 {
            return Next::Stop;
        }
        self.group.place += 1;
        Next::Moved
    }

    /// Lanes are gone.
    pub(crate) fn lose(&mut self, mask: u32) {
        self.group.mask &= !mask;
        self.warp.exit(mask);
        self.grid.progress();
        self.exited(mask);
    }

    /// `trap`: the whole kernel ends.
    pub(crate) fn trap(&mut self, mask: u32, message: &str) -> Next {
        let lane = mask.trailing_zeros() as usize % WARP;
        self.fault(FaultKind::Trap, lane, 0, None, || message.to_owned());
        self.grid.stopped = true;
        Next::Stop
    }
}
