//! Where lanes that take different branches meet again: the immediate post-dominator of the branch.

use crate::exec::op::{NONE, Op, Step};

/// Sets the meeting point of each branch of a function.
pub(crate) fn set_meeting_points(steps: &mut [Step]) {
    let flow = Flow::new(steps);
    let dominators = flow.post_dominators();
    for (place, step) in steps.iter_mut().enumerate() {
        let point = flow.block_of[place];
        let meeting = match dominators[point] {
            Some(block) if block != flow.exit() => flow.starts[block] as u32,
            _ => NONE,
        };
        match &mut step.op {
            Op::Jump { meet, .. } | Op::JumpTable { meet, .. } => *meet = meeting,
            _ => {}
        }
    }
}

/// Basic blocks and their successors; the last number is a block behind all ends of the function.
struct Flow {
    starts: Vec<usize>,
    block_of: Vec<usize>,
    successors: Vec<Vec<usize>>,
}

fn targets(step: &Step) -> &[u32] {
    match &step.op {
        Op::Jump { target, .. } => std::slice::from_ref(target),
        Op::JumpTable { targets, .. } => targets,
        _ => &[],
    }
}

fn ends_block(step: &Step) -> bool {
    matches!(step.op, Op::Jump { .. } | Op::JumpTable { .. } | Op::Return | Op::Exit | Op::Trap)
}

impl Flow {
    fn new(steps: &[Step]) -> Flow {
        let mut leads = vec![false; steps.len() + 1];
        leads[0] = true;
        for (place, step) in steps.iter().enumerate() {
            for target in targets(step) {
                leads[*target as usize] = true;
            }
            if ends_block(step) {
                leads[place + 1] = true;
            }
        }
        let starts: Vec<usize> = (0..steps.len()).filter(|place| leads[*place]).collect();
        let mut block_of = vec![0; steps.len()];
        for (block, start) in starts.iter().enumerate() {
            let end = starts.get(block + 1).copied().unwrap_or(steps.len());
            block_of[*start..end].fill(block);
        }
        let exit = starts.len();
        let mut successors = Vec::with_capacity(exit);
        for block in 0..exit {
            let end = starts.get(block + 1).copied().unwrap_or(steps.len());
            let last = &steps[end - 1];
            let mut next: Vec<usize> =
                targets(last).iter().map(|target| block_of[*target as usize]).collect();
            let leaves = matches!(last.op, Op::Return | Op::Exit | Op::Trap);
            let conditional = last.guard != NONE;
            if leaves {
                next.push(exit);
            }
            if !ends_block(last) || conditional {
                next.push(if end < steps.len() { block + 1 } else { exit });
            }
            successors.push(next);
        }
        Flow { starts, block_of, successors }
    }

    fn exit(&self) -> usize {
        self.starts.len()
    }

    /// Immediate post-dominators, by the algorithm of Cooper, Harvey and Kennedy ("A simple, fast dominance algorithm", 2001) on
    /// the reversed graph. `None` where no end can be reached.
    fn post_dominators(&self) -> Vec<Option<usize>> {
        let exit = self.exit();
        let mut predecessors = vec![Vec::new(); exit + 1];
        for (block, next) in self.successors.iter().enumerate() {
            for successor in next {
                predecessors[*successor].push(block);
            }
        }
        let order = postorder(&predecessors, exit);
        let mut number = vec![usize::MAX; exit + 1];
        for (position, block) in order.iter().enumerate() {
            number[*block] = position;
        }
        let mut dominator: Vec<Option<usize>> = vec![None; exit + 1];
        dominator[exit] = Some(exit);
        let mut changed = true;
        while changed {
            changed = false;
            for block in order.iter().rev().filter(|block| **block != exit) {
                let mut found: Option<usize> = None;
                for successor in &self.successors[*block] {
                    if dominator[*successor].is_none() {
                        continue;
                    }
                    found = Some(match found {
                        None => *successor,
                        Some(other) => common(&dominator, &number, *successor, other),
                    });
                }
                if dominator[*block] != found {
                    dominator[*block] = found;
                    changed = true;
                }
            }
        }
        dominator
    }
}

fn common(dominator: &[Option<usize>], number: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while number[a] < number[b] {
            a = dominator[a].unwrap_or(b);
        }
        while number[b] < number[a] {
            b = dominator[b].unwrap_or(a);
        }
    }
    a
}

/// Blocks from which the exit can be reached, in the postorder of a walk from it against the edges.
fn postorder(predecessors: &[Vec<usize>], exit: usize) -> Vec<usize> {
    let mut seen = vec![false; exit + 1];
    let mut order = Vec::new();
    let mut stack = vec![(exit, 0)];
    seen[exit] = true;
    while let Some((block, next)) = stack.pop() {
        match predecessors[block].get(next) {
            Some(predecessor) => {
                stack.push((block, next + 1));
                if !seen[*predecessor] {
                    seen[*predecessor] = true;
                    stack.push((*predecessor, 0));
                }
            }
            None => order.push(block),
        }
    }
    order
}
