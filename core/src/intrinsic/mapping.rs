//! How a block could be cut so that an intrinsic computes its parts.
//!
//! The value that a block stores has the form that a description's has; then each operand of the block stands for a
//! parameter. A loop of the description can be part of each iterator on which exactly those operands depend whose
//! parameters the loop moves through. Extents and layouts are not asked for here: a schedule changes them.

use crate::analysis::block::single_store;
use crate::expr::{Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::intrinsic::TensorIntrinsic;
use crate::intrinsic::matching::is_commutative;
use crate::program::Program;
use crate::stmt::{Block, IterKind};

/// How a block could be cut for an intrinsic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// For each loop of the description, outermost first, which of the block's iterators it is a part of. Of several loops
    /// that are parts of one iterator, the last is the innermost.
    pub iters: Vec<usize>,
    /// The operands, in the order of the description's tensor parameters.
    pub operands: Vec<MappedOperand>,
}

/// The argument for a tensor parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedOperand {
    /// The buffer of the block.
    pub buffer: BufferId,
    /// For each dimension of the parameter, which loop of the description moves along it.
    pub loops: Vec<usize>,
    /// For each loop of the description that moves through the parameter, the dimension of the buffer that its iterator is
    /// the index of, or a part of the index.
    pub dimensions: Vec<(usize, usize)>,
    /// Whether all of these iterators are indices alone. Otherwise, as in the image of a convolution, the operand cannot be laid
    /// out anew: one element has several places.
    pub is_movable: bool,
}

/// Most mappings of one block to one intrinsic.
const MAX_MAPPINGS: usize = 64;

/// A parameter's access in the description, and the access that stands for it.
type Pair<'a> = ((BufferId, &'a Indices), (BufferId, &'a Indices));

impl TensorIntrinsic {
    /// The extents of the description's loops, outermost first.
    pub fn extents(&self) -> impl ExactSizeIterator<Item = i64> {
        self.loops.iter().map(|(_, extent)| *extent)
    }

    /// The ways in which the intrinsic could compute parts of a block, each different from the others in the iterators
    /// that it cuts.
    pub fn mappings(&self, program: &Program, block: &Block) -> Vec<Mapping> {
        let Some(store) = single_store(block) else { return Vec::new() };
        let target = ((self.store.buffer, &self.store.indices), (store.buffer, &store.indices));
        if !self.has_dtype_of(program, target) {
            return Vec::new();
        }
        let mut found: Vec<Mapping> = Vec::new();
        for pairs in self.paired(program, &self.store.value, &store.value, vec![target]) {
            for mapping in self.mappings_of(block, &pairs) {
                if found.len() < MAX_MAPPINGS && found.iter().all(|known| known.iters != mapping.iters) {
                    found.push(mapping);
                }
            }
        }
        found
    }

    fn has_dtype_of(&self, program: &Program, ((param, _), (buffer, _)): Pair<'_>) -> bool {
        self.description.buffer(param).dtype == program.buffer(buffer).dtype
    }

    /// The ways in which the loads of two values pair up, when the values have one form.
    fn paired<'a>(
        &self,
        program: &Program,
        wanted: &'a Expr,
        found: &'a Expr,
        pairs: Vec<Pair<'a>>,
    ) -> Vec<Vec<Pair<'a>>> {
        if wanted.dtype() != found.dtype() {
            return Vec::new();
        }
        let both = |x: (&'a Expr, &'a Expr), y: (&'a Expr, &'a Expr), pairs: Vec<Pair<'a>>| {
            let first = self.paired(program, x.0, x.1, pairs);
            first.into_iter().flat_map(|pairs| self.paired(program, y.0, y.1, pairs)).collect::<Vec<_>>()
        };
        match (wanted.kind(), found.kind()) {
            (ExprKind::Load(param, indices), ExprKind::Load(buffer, own)) => {
                let pair = ((*param, indices), (*buffer, own));
                let known = pairs.iter().find(|(wanted, _)| *wanted == pair.0);
                let fits = known.map_or_else(|| self.has_dtype_of(program, pair), |known| *known == pair);
                let more = known.is_none().then_some(pair);
                if fits { vec![pairs.into_iter().chain(more).collect()] } else { Vec::new() }
            }
            (ExprKind::Constant(a), ExprKind::Constant(b)) if a == b => vec![pairs],
            (ExprKind::Cast(x), ExprKind::Cast(y)) | (ExprKind::Bitcast(x), ExprKind::Bitcast(y)) => {
                self.paired(program, x, y, pairs)
            }
            (ExprKind::Unary(a, x), ExprKind::Unary(b, y)) if a == b => self.paired(program, x, y, pairs),
            (ExprKind::Binary(a, x0, x1), ExprKind::Binary(b, y0, y1)) if a == b => {
                let mut ways = both((x0, y0), (x1, y1), pairs.clone());
                if is_commutative(*a) {
                    ways.extend(both((x0, y1), (x1, y0), pairs));
                }
                ways
            }
            (ExprKind::Select(x0, x1, x2), ExprKind::Select(y0, y1, y2)) => {
                let ways = both((x0, y0), (x1, y1), pairs);
                ways.into_iter().flat_map(|pairs| self.paired(program, x2, y2, pairs)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The assignments of loops to iterators for one pairing of operands.
    fn mappings_of(&self, block: &Block, pairs: &[Pair<'_>]) -> Vec<Mapping> {
        let mut assignments = vec![Vec::new()];
        for (var, _) in &self.loops {
            let fitting: Vec<usize> = (0..block.iters.len())
                .filter(|number| self.is_fitting(*var, block, *number, pairs))
                .collect();
            assignments = assignments
                .into_iter()
                .flat_map(|iters: Vec<usize>| {
                    fitting.iter().map(move |number| [iters.as_slice(), &[*number]].concat())
                })
                .take(MAX_MAPPINGS)
                .collect();
        }
        assignments.into_iter().filter_map(|iters| self.mapping(block, pairs, iters)).collect()
    }

    /// Whether a loop can be a part of an iterator: of its kind, and in the same operands, each time in one index, which it is
    /// alone in the output.
    fn is_fitting(&self, var: VarId, block: &Block, number: usize, pairs: &[Pair<'_>]) -> bool {
        let own = &block.iters[number];
        self.kind_of(var) == Some(own.kind)
            && pairs.iter().all(|((param, wanted), (_, found))| {
                let mut mentions = found.iter().filter(|index| index.mentions(own.var));
                let is_output = *param == self.store.buffer;
                let fits = |index: &Index| match is_output {
                    true => index.as_var() == Some(own.var),
                    false => index.linear_coefficient(own.var).is_some_and(|coefficient| coefficient > 0),
                };
                match wanted.iter().any(|index| index.mentions(var)) {
                    true => mentions.next().is_some_and(fits) && mentions.next().is_none(),
                    false => mentions.next().is_none(),
                }
            })
    }

    fn kind_of(&self, var: VarId) -> Option<IterKind> {
        let blocks = crate::analysis::scope::blocks(&self.description.body);
        blocks.first()?.iters.iter().find(|iter| iter.var == var).map(|iter| iter.kind)
    }

    fn mapping(&self, block: &Block, pairs: &[Pair<'_>], iters: Vec<usize>) -> Option<Mapping> {
        let operand = |param: BufferId| {
            let ((_, wanted), (buffer, found)) = pairs.iter().find(|((own, _), _)| *own == param)?;
            let loop_of = |index: &Index| {
                let var = index.as_var()?;
                self.loops.iter().position(|(own, _)| *own == var)
            };
            let loops: Vec<usize> = wanted.iter().map(loop_of).collect::<Option<_>>()?;
            let dimension =
                |number: &usize| Some((*number, place_of(found, block.iters[iters[*number]].var)?));
            let dimensions: Vec<(usize, usize)> = loops.iter().map(dimension).collect::<Option<_>>()?;
            let var_of = |number: usize| block.iters[iters[number]].var;
            let is_movable = dimensions
                .iter()
                .all(|(number, dimension)| found[*dimension].as_var() == Some(var_of(*number)));
            // The elements along the last dimension have to be neighbours as they are.
            let (number, dimension) = *dimensions.last()?;
            let are_neighbours = dimension + 1 == found.len()
                && found[dimension].linear_coefficient(var_of(number)) == Some(1);
            (is_movable || are_neighbours).then_some(MappedOperand {
                buffer: *buffer,
                loops,
                dimensions,
                is_movable,
            })
        };
        let params = self.description.buffer_params().map(|(param, _)| operand(param));
        let operands = params.collect::<Option<_>>()?;
        Some(Mapping { iters, operands })
    }
}

/// The dimension in whose index a variable is.
fn place_of(indices: &Indices, var: VarId) -> Option<usize> {
    indices.iter().position(|index| index.mentions(var))
}
