//! The walk through a program's statements: their forms, the scopes they open and the storage they use.

use rustc_hash::FxHashSet;

use crate::analysis::block::{lone_update, updates_atomically};
use crate::annotation;
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::program::{Access, Alignment, Param, Scope};
use crate::render::Entity;
use crate::stmt::{Alloc, Annotations, Block, Copies, For, If, Iter, IterKind, LoopKind, Stmt, Store};
use crate::strides::lie_apart;
use crate::swizzle::Swizzle;
use crate::thread_axis::ThreadAxis;
use crate::verify::values::{Use, Visible};
use crate::verify::{Level, Report};

/// Checks the shapes of buffers and the body.
pub(super) fn check(report: &mut Report<'_>, level: Level) {
    let program = report.program;
    let dims = program.params.iter().filter_map(|param| match param {
        Param::Dim(var) => Some(*var),
        _ => None,
    });
    let mut walk = Walk {
        dims: dims.collect(),
        report,
        level,
        variables: Vec::new(),
        first_visible: 0,
        in_block: false,
        reduce_iters: Vec::new(),
        conditions: 0,
        statements: 0,
        allocated: Vec::new(),
        ever_allocated: FxHashSet::default(),
        stored: FxHashSet::default(),
        loaded: Vec::new(),
    };
    walk.stmt(&program.body);
    walk.shapes();
    walk.storage();
}

/// A loop or iterator around a statement.
pub(super) struct Enclosing {
    pub(super) var: VarId,
    /// The extent, when it is constant.
    pub(super) extent: Option<i64>,
    /// How the iterations of a loop are executed; `None` for an iterator.
    kind: Option<LoopKind>,
}

/// The state of the walk.
pub(super) struct Walk<'a, 'r> {
    pub(super) report: &'r mut Report<'a>,
    pub(super) level: Level,
    pub(super) dims: FxHashSet<VarId>,
    /// Loop variables and iterators around the statement, outermost first.
    pub(super) variables: Vec<Enclosing>,
    /// Loops from this position on may be mentioned: a block hides the loops around it.
    pub(super) first_visible: usize,
    in_block: bool,
    /// The reduction iterators of the block around the statement.
    reduce_iters: Vec<VarId>,
    /// How many `if`s and `select` branches are around.
    pub(super) conditions: u32,
    statements: u32,
    allocated: Vec<BufferId>,
    ever_allocated: FxHashSet<BufferId>,
    stored: FxHashSet<BufferId>,
    loaded: Vec<(BufferId, Entity)>,
}

impl Walk<'_, '_> {
    fn error(&mut self, entity: Entity, message: String) {
        self.report.error(entity, message);
    }

    /// Checks the strides of a parameter.
    fn strides(&mut self, id: BufferId, entity: Entity) {
        let program = self.report.program;
        let Some(strides) = program.strides(id) else { return };
        for stride in strides {
            self.extent(stride, Visible::Dims, entity, "a stride of a buffer");
        }
        let buffer = program.buffer(id);
        let problem = if program.access(id).is_none() {
            "only a parameter has strides"
        } else if strides.len() != buffer.shape.len() {
            "it has another number of strides than dimensions"
        } else if buffer.dtype.is_storage_only() {
            "elements of storage types lie densely"
        } else if self.level == Level::Flat {
            "level `flat` has no strides"
        } else if self.may_overlap(id, strides) {
            "elements that are written would lie on each other"
        } else {
            return;
        };
        let name = self.report.buffer(id);
        self.error(entity, format!("`{name}` cannot have these strides: {problem}"));
    }

    /// Whether two elements of a parameter that is written have one place, where all sizes are numbers.
    fn may_overlap(&self, id: BufferId, strides: &[Index]) -> bool {
        let program = self.report.program;
        let numbers =
            |indices: &[Index]| indices.iter().map(Index::as_constant).collect::<Option<Vec<i64>>>();
        let is_written = program.access(id).is_some_and(Access::is_written);
        match (numbers(&program.buffer(id).shape), numbers(strides)) {
            (Some(shape), Some(strides)) => is_written && !lie_apart(&shape, &strides),
            _ => false,
        }
    }

    fn shapes(&mut self) {
        for (id, buffer) in self.report.program.buffers() {
            // An unused intermediate is no part of the program.
            let used = self.report.program.access(id).is_some()
                || self.stored.contains(&id)
                || self.ever_allocated.contains(&id)
                || self.loaded.iter().any(|(loaded, _)| *loaded == id);
            if !used {
                continue;
            }
            let entity = Entity::Buffer(id);
            for extent in &buffer.shape {
                self.extent(extent, Visible::Dims, entity, "an extent of a buffer");
            }
            if buffer.scope == Scope::Streamed && self.report.program.access(id).is_none() {
                let name = self.report.buffer(id);
                self.error(entity, format!("`{name}` is an intermediate, which cannot be `streamed`"));
            }
            self.strides(id, entity);
            for (axis, alignment) in self.report.program.alignments(id) {
                let is_sound = axis + 1 < buffer.shape.len()
                    && (1..=Alignment::MAX_FACTOR).contains(&alignment.factor)
                    && (0..alignment.factor).contains(&alignment.offset)
                    && self.report.program.access(id).is_none();
                if !is_sound {
                    let name = self.report.buffer(id);
                    self.error(entity, format!("dimension {axis} of `{name}` cannot be aligned like this"));
                }
            }
            self.swizzle(id, entity);
            if self.level == Level::Flat && buffer.shape.len() != 1 {
                let (name, rank) = (self.report.buffer(id), buffer.shape.len());
                self.error(entity, format!("buffer `{name}` is of rank {rank}; level `flat` wants rank 1"));
            }
            if self.level == Level::Flat && buffer.dtype.is_storage_only() {
                let (name, dtype) = (self.report.buffer(id), buffer.dtype);
                self.error(
                    entity,
                    format!("buffer `{name}` is of type {dtype}; level `flat` has bytes instead"),
                );
            }
        }
    }

    /// Checks that a buffer whose rows have their pieces exchanged is an intermediate of whole rows.
    fn swizzle(&mut self, id: BufferId, entity: Entity) {
        let program = self.report.program;
        let Some(Swizzle { row }) = program.swizzle(id) else { return };
        let has_whole_rows = || program.buffer(id).constant_len().is_some_and(|len| len % row == 0);
        let is_sound = program.access(id).is_none()
            && program.alignments(id).next().is_none()
            && (row == 0 || (self.level == Level::Flat && row > 0 && has_whole_rows()));
        if !is_sound {
            let name = self.report.buffer(id);
            let wanted = "an intermediate of whole rows without aligned dimensions can be";
            self.error(entity, format!("`{name}` cannot be swizzled like this: {wanted}"));
        }
    }

    /// Checks an index that gives a size.
    fn extent(&mut self, extent: &Index, visible: Visible, entity: Entity, what: &'static str) {
        self.pure_index(extent, visible, entity, what);
        if extent.as_constant().is_some_and(|extent| extent < 0) {
            self.error(entity, format!("{what} is negative"));
        }
    }

    /// Checks an index in which neither loads nor lanes may occur.
    fn pure_index(&mut self, index: &Index, visible: Visible, entity: Entity, what: &'static str) {
        let mut place = Use::new(visible, entity, what);
        place.loads_allowed = false;
        self.index(index, &mut place);
        if !place.lanes.is_empty() {
            self.error(entity, format!("{what} cannot be a vector"));
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().for_each(|stmt| self.stmt(stmt)),
            Stmt::For(node) => self.for_loop(node),
            Stmt::Block(node) => self.block(node),
            Stmt::Store(node) => self.store(node),
            Stmt::If(node) => self.conditional(node),
            Stmt::Alloc(node) => self.alloc(node),
            Stmt::Intrinsic(node) => self.stmt(&node.body),
            Stmt::Copies(copies) => self.copies(*copies),
            Stmt::Shuffle(node) => self.stmt(&node.body),
            // Its position depends on threads, which are checked as a whole.
            Stmt::Barrier => {}
        }
    }

    fn annotations(&mut self, entity: Entity, annotations: &Annotations) {
        for (name, value) in annotations {
            if let Err((key, expected)) = annotation::check(name, value) {
                self.error(entity, format!("the value of annotation `{key}` must be {}", expected.text()));
            }
        }
    }

    fn for_loop(&mut self, node: &For) {
        let entity = Entity::Loop(node.id);
        self.annotations(entity, &node.annotations);
        let visible =
            if self.level == Level::Blocks && !self.in_block { Visible::Dims } else { Visible::Inside };
        self.extent(&node.extent, visible, entity, "the extent of a loop");
        let allowed = match node.kind {
            LoopKind::Serial => true,
            LoopKind::Parallel => !self.in_block,
            LoopKind::Bound(_) => !self.in_block,
            LoopKind::Vectorized | LoopKind::Unrolled => self.level != Level::Flat,
        };
        if !allowed {
            let place =
                if self.in_block { "inside a block".into() } else { format!("at level `{}`", self.level) };
            let name = self.report.variable(node.var);
            self.error(entity, format!("loop `{name}` cannot be {} {place}", node.kind.text()));
        }
        // An extent that depends on loops may be 0 for some of their iterations: a condition on them.
        let mut is_condition = false;
        node.extent.for_each_var(&mut |var| is_condition |= !self.dims.contains(&var));
        self.conditions += u32::from(is_condition);
        self.variables.push(Enclosing {
            var: node.var,
            extent: node.extent.as_constant(),
            kind: Some(node.kind),
        });
        self.stmt(&node.body);
        self.variables.pop();
        self.conditions -= u32::from(is_condition);
    }

    fn block(&mut self, node: &Block) {
        let entity = Entity::Block(node.id);
        self.annotations(entity, &node.annotations);
        if self.level != Level::Blocks {
            self.error(
                entity,
                format!("block `{}` at level `{}`, which has no blocks", node.name, self.level),
            );
        }
        if self.in_block {
            self.error(entity, format!("block `{}` is inside another block", node.name));
        }
        let is_atomic = updates_atomically(node);
        for iter in &node.iters {
            self.iter(iter);
            self.loops_of(iter, is_atomic);
        }
        for guard in &node.guards {
            self.pure_index(&guard.index, Visible::Around, entity, "a guard");
            self.pure_index(&guard.bound, Visible::Around, entity, "a guard");
        }
        let outer_visible = std::mem::replace(&mut self.first_visible, self.variables.len());
        let was_in_block = std::mem::replace(&mut self.in_block, true);
        let depth = self.variables.len();
        if let Some(init) = &node.init {
            self.enter_iters(node.iters.iter().filter(|iter| iter.kind != IterKind::Reduce));
            self.stmt(init);
            self.variables.truncate(depth);
        }
        self.enter_iters(node.iters.iter());
        let reduce = node.iters.iter().filter(|iter| iter.kind == IterKind::Reduce).map(|iter| iter.var);
        let outer_reduce = std::mem::replace(&mut self.reduce_iters, reduce.collect());
        self.stmt(&node.body);
        self.variables.truncate(depth);
        self.reduce_iters = outer_reduce;
        self.in_block = was_in_block;
        self.first_visible = outer_visible;
    }

    fn iter(&mut self, iter: &Iter) {
        let entity = Entity::Variable(iter.var);
        self.extent(&iter.extent, Visible::Dims, entity, "the extent of an iterator");
        self.pure_index(&iter.binding, Visible::Around, entity, "the binding of an iterator");
    }

    /// Checks how the loops are executed that an iterator depends on: those of an ordered one in order, and those of a reduction that does not
    /// update its elements in one step one after the other, or by threads that combine their values.
    fn loops_of(&mut self, iter: &Iter, is_atomic: bool) {
        let (is_allowed, points): (fn(LoopKind) -> bool, &str) = match iter.kind {
            IterKind::Ordered => {
                (|kind| matches!(kind, LoopKind::Serial | LoopKind::Unrolled), "an ordered iterator")
            }
            IterKind::Reduce if !is_atomic => (may_reduce, "a reduction"),
            IterKind::Reduce | IterKind::Spatial => return,
        };
        let is_wrong = |enclosing: &&Enclosing| {
            enclosing.kind.is_some_and(|kind| !is_allowed(kind))
                && enclosing.extent.is_none_or(|extent| extent > 1)
                && iter.binding.mentions(enclosing.var)
        };
        if let Some(&Enclosing { var, kind: Some(kind), .. }) = self.variables.iter().find(is_wrong) {
            let (name, kind) = (self.report.variable(var), kind.text());
            self.error(
                Entity::Variable(iter.var),
                format!("loop `{name}` is {kind} and executes the points of {points}"),
            );
        }
    }

    fn enter_iters<'i>(&mut self, iters: impl Iterator<Item = &'i Iter>) {
        self.variables.extend(iters.map(|iter| Enclosing {
            var: iter.var,
            extent: iter.extent.as_constant(),
            kind: None,
        }));
    }

    fn next_statement(&mut self) -> Entity {
        self.statements += 1;
        Entity::Statement(self.statements - 1)
    }

    fn store(&mut self, node: &Store) {
        let entity = self.next_statement();
        if self.level == Level::Blocks && !self.in_block {
            self.error(entity, "a store outside of a block at level `blocks`".to_owned());
        }
        let mut place = Use::new(Visible::Inside, entity, "a store");
        self.access(node.buffer, &node.indices, node.value.dtype(), &mut place);
        let target_lanes = place.lanes.len();
        self.expr(&node.value, &mut place);
        if target_lanes == 0 && !place.lanes.is_empty() {
            self.error(entity, "a vector is stored to a single element".to_owned());
        }
        self.check_lanes(&place);
        // Points that update elements in any order may choose them.
        if !node.is_atomic() {
            self.check_reduced(node, entity);
        }
        self.check_async(node, entity);
        self.check_atomic(node, target_lanes, entity);
        self.stored.insert(node.buffer);
        if let Some(access) = self.report.program.access(node.buffer).filter(|access| !access.is_written()) {
            let (name, access) = (self.report.buffer(node.buffer), access.text());
            self.error(entity, format!("`{name}` is an `{access}` parameter and cannot be stored to"));
        }
    }

    /// All points of a reduction store to one element.
    fn check_reduced(&mut self, node: &Store, entity: Entity) {
        let reduced = self.reduce_iters.iter().copied();
        for var in
            reduced.filter(|var| node.indices.iter().any(|index| index.mentions(*var))).collect::<Vec<_>>()
        {
            let name = self.report.variable(var);
            self.error(entity, format!("reduction iterator `{name}` indexes a store of its own block"));
        }
    }

    /// Asynchronous stores go to memory that the threads of a block share, below the level of blocks.
    fn check_async(&mut self, node: &Store, entity: Entity) {
        if node.is_async() && self.level == Level::Blocks {
            self.error(
                entity,
                "an asynchronous store at level `blocks`; only lowering makes them".to_owned(),
            );
        }
        if node.is_async() && self.report.program.buffer(node.buffer).scope != Scope::Shared {
            let name = self.report.buffer(node.buffer);
            self.error(entity, format!("`{name}` is stored to asynchronously, and is not `shared`"));
        }
    }

    /// A store in one step combines one element with a value.
    fn check_atomic(&mut self, node: &Store, target_lanes: usize, entity: Entity) {
        if node.is_atomic() && (lone_update(node).is_none() || target_lanes > 0) {
            let name = self.report.buffer(node.buffer);
            self.error(entity, format!("an atomic store does not update one element of `{name}`"));
        }
    }

    fn copies(&mut self, copies: Copies) {
        if self.level == Level::Blocks {
            let problem = "groups of asynchronous stores at level `blocks`; only lowering makes them";
            self.error(Entity::Program, problem.to_owned());
        }
        if let Copies::Wait(left @ Copies::TOO_MANY_GROUPS..) = copies {
            let most = Copies::TOO_MANY_GROUPS - 1;
            self.error(Entity::Program, format!("{left} groups of stores cannot be under way, only {most}"));
        }
    }

    fn conditional(&mut self, node: &If) {
        let entity = self.next_statement();
        if self.level == Level::Blocks && !self.in_block {
            self.error(entity, "an `if` outside of a block at level `blocks`".to_owned());
        }
        let mut place = Use::new(Visible::Inside, entity, "a condition");
        self.expr(&node.condition, &mut place);
        let dtype = node.condition.dtype();
        if dtype != crate::dtype::DType::Bool {
            self.error(entity, format!("the condition of an `if` must be bool, not {dtype}"));
        }
        if !place.lanes.is_empty() {
            self.error(entity, "the condition of an `if` cannot be a vector; use `select`".to_owned());
        }
        self.conditions += 1;
        self.stmt(&node.then);
        node.otherwise.iter().for_each(|stmt| self.stmt(stmt));
        self.conditions -= 1;
    }

    fn alloc(&mut self, node: &Alloc) {
        if self.level == Level::Blocks {
            self.alloc_error(node, "is allocated at level `blocks`, which leaves its place open");
        }
        if self.report.program.access(node.buffer).is_some() {
            self.alloc_error(node, "is a parameter and cannot be allocated");
        }
        if !self.ever_allocated.insert(node.buffer) {
            self.alloc_error(node, "is allocated twice");
        }
        self.allocated.push(node.buffer);
        self.stmt(&node.body);
        self.allocated.pop();
    }

    fn alloc_error(&mut self, node: &Alloc, problem: &str) {
        let name = self.report.buffer(node.buffer);
        self.error(Entity::Buffer(node.buffer), format!("buffer `{name}` {problem}"));
    }

    /// Notes that a statement reads a buffer.
    pub(super) fn note_load(&mut self, buffer: BufferId, entity: Entity) {
        self.loaded.push((buffer, entity));
    }

    /// Checks that a buffer has storage here.
    pub(super) fn check_allocated(&mut self, buffer: BufferId, entity: Entity) {
        let needs = self.level != Level::Blocks && self.report.program.access(buffer).is_none();
        if needs && !self.allocated.contains(&buffer) {
            let name = self.report.buffer(buffer);
            self.error(entity, format!("buffer `{name}` is used outside of its `alloc`"));
        }
    }

    /// At level `flat` all lanes of a statement are of one number, elsewhere there are none.
    fn check_lanes(&mut self, place: &Use) {
        if self.level != Level::Flat && !place.lanes.is_empty() {
            self.error(place.entity, format!("lanes occur at level `{}`; only `flat` has them", self.level));
        } else if place.lanes.len() > 1 {
            let counts: Vec<String> = place.lanes.iter().map(u32::to_string).collect();
            let message = format!("one statement has vectors of {} lanes", counts.join(" and "));
            self.error(place.entity, message);
        }
    }

    /// Checks that every buffer that is read was written, and that every output is written.
    fn storage(&mut self) {
        for (buffer, access) in self.report.program.buffer_params() {
            // Nothing need store to a tensor of no elements.
            let is_empty = self.report.program.buffer(buffer).constant_len() == Some(0);
            if access == Access::Output && !is_empty && !self.stored.contains(&buffer) {
                let name = self.report.buffer(buffer);
                self.error(
                    Entity::Buffer(buffer),
                    format!("`{name}` is an `out` parameter, but nothing stores to it"),
                );
            }
        }
        let mut reported = FxHashSet::default();
        for (buffer, entity) in std::mem::take(&mut self.loaded) {
            let undefined = self.report.program.access(buffer).is_none() && !self.stored.contains(&buffer);
            if undefined && reported.insert(buffer) {
                let name = self.report.buffer(buffer);
                self.error(entity, format!("buffer `{name}` is loaded, but nothing stores to it"));
            }
        }
    }
}

/// Whether the iterations of a loop may combine values in one element that they do not update in one step.
fn may_reduce(kind: LoopKind) -> bool {
    match kind {
        LoopKind::Serial | LoopKind::Unrolled | LoopKind::Vectorized => true,
        LoopKind::Parallel => false,
        LoopKind::Bound(axis) => !axis.is_of_grid() || axis == ThreadAxis::ThreadX,
    }
}
