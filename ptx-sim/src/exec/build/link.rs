//! Linking: which functions and variables a kernel reaches, and where they lie.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::exec::build::{self, Code, Formal, Layout};
use crate::parse::ParseError;
use crate::program::{
    Base, Function, FunctionId, InitialValue, Instruction, Operand, Program, Space, VariableId,
};

/// Room between static variables in shared memory, so that an access beyond one is noticed. A multiple of 128 bytes leaves
/// banks as they would be.
const GAP: u64 = 128;

/// Bytes of parameters that a kernel may have, as of PTX 8.1.
const MOST_PARAMS: u64 = 32_764;

/// A kernel that is ready to be launched.
#[derive(Clone, Debug)]
pub(crate) struct Linked {
    /// The kernel, and the functions that it reaches.
    pub(crate) codes: Vec<Code>,
    /// The numbers of their codes.
    pub(crate) functions: FxHashMap<FunctionId, u32>,
    /// The parameters of the kernel.
    pub(crate) params: Vec<Parameter>,
    pub(crate) param_bytes: u64,
    /// Static variables in shared memory: first byte and size, ascending.
    pub(crate) shared_variables: Vec<SharedVariable>,
    /// Where memory of the launch's size begins.
    pub(crate) dynamic_shared: u64,
    /// How many bytes the static variables take without gaps.
    pub(crate) static_shared_bytes: u64,
    /// Whether the kernel names memory of the launch's size.
    pub(crate) required_threads: Option<[u32; 3]>,
    pub(crate) most_threads: Option<[u32; 3]>,
}

/// A parameter of the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// A static variable in shared memory.
#[derive(Clone, Debug)]
pub(crate) struct SharedVariable {
    pub(crate) name: String,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Rounds up.
fn align(value: u64, to: u64) -> u64 {
    value.next_multiple_of(to.max(1))
}

/// Links a kernel.
pub(crate) fn link(program: &Program, entry: FunctionId) -> Result<Linked, ParseError> {
    let functions = reachable(program, entry);
    let mut layout = Layout {
        functions: functions.iter().enumerate().map(|(n, id)| (*id, n as u32)).collect(),
        ..Layout::default()
    };
    let (params, param_bytes) = lay_out_params(program, entry, &mut layout)?;
    let used = used_variables(program, &functions);
    let shared = lay_out_shared(program, &used, &mut layout)?;
    let mut formals: FxHashMap<FunctionId, (Vec<Formal>, Vec<Formal>)> = FxHashMap::default();
    let mut frames = FxHashMap::default();
    for id in &functions {
        let function = program.function(*id);
        if *id != entry {
            formals.insert(*id, (function.params.clone(), function.returns.clone()));
        }
        frames.insert(*id, lay_out_frame(program, *id, *id == entry, &mut layout)?);
    }
    let codes: Result<Vec<Code>, ParseError> =
        functions.iter().map(|id| build::function(program, *id, &layout, &formals, frames[id])).collect();
    let function = program.function(entry);
    Ok(Linked {
        codes: codes?,
        functions: layout.functions.clone(),
        params,
        param_bytes,
        dynamic_shared: shared.dynamic,
        static_shared_bytes: shared.static_bytes,
        shared_variables: shared.variables,
        required_threads: function.required_threads,
        most_threads: function.most_threads,
    })
}

/// The kernel and all functions with a body that it names, directly or not.
fn reachable(program: &Program, entry: FunctionId) -> Vec<FunctionId> {
    let mut found = vec![entry];
    let mut seen: FxHashSet<FunctionId> = [entry].into_iter().collect();
    let mut at = 0;
    while at < found.len() {
        let function = program.function(found[at]);
        let mut named = Vec::new();
        for_each_operand(function, &mut |operand| {
            if let Operand::Function(id) = operand {
                named.push(*id);
            }
        });
        if function.instructions.iter().any(is_indirect_call) {
            named.extend(functions_in_memory(program));
        }
        found.extend(named.into_iter().filter(|id| program.function(*id).has_body && seen.insert(*id)));
        at += 1;
    }
    found
}

/// Whether a register holds the address of the function that is called.
fn is_indirect_call(instruction: &Instruction) -> bool {
    let is_register = |operand: &Operand| matches!(operand, Operand::Register(_));
    instruction.form.opcode == "call" && instruction.operands.iter().any(is_register)
}

/// The functions whose addresses variables hold from the beginning.
fn functions_in_memory(program: &Program) -> impl Iterator<Item = FunctionId> {
    let values = program.variables.iter().flat_map(|variable| &variable.initial);
    values.filter_map(|piece| match &piece.value {
        InitialValue::Address { name, .. } => program.function_names.get(name).copied(),
        InitialValue::Number(_) => None,
    })
}

fn for_each_operand(function: &Function, f: &mut impl FnMut(&Operand)) {
    fn walk(operand: &Operand, f: &mut impl FnMut(&Operand)) {
        f(operand);
        if let Operand::Vector(parts) | Operand::List(parts) = operand {
            parts.iter().for_each(|part| walk(part, f));
        }
    }
    for instruction in &function.instructions {
        instruction.operands.iter().for_each(|operand| walk(operand, f));
    }
}

fn used_variables(program: &Program, functions: &[FunctionId]) -> FxHashSet<VariableId> {
    let mut used = FxHashSet::default();
    for id in functions {
        for_each_operand(program.function(*id), &mut |operand| match operand {
            Operand::Variable { variable, .. } | Operand::Address { base: Base::Variable(variable), .. } => {
                used.insert(*variable);
            }
            _ => {}
        });
    }
    used
}

fn lay_out_params(
    program: &Program,
    entry: FunctionId,
    layout: &mut Layout,
) -> Result<(Vec<Parameter>, u64), ParseError> {
    let mut end = 0;
    let mut params = Vec::new();
    for formal in &program.function(entry).params {
        let Formal::Variable(id) = formal else { continue };
        let variable = program.variable(*id);
        let offset = align(end, variable.align);
        layout.params.insert(*id, offset);
        let bytes = variable.bytes;
        if offset + bytes > MOST_PARAMS {
            let function = program.function(entry);
            let message = format!("`{}` takes more than {MOST_PARAMS} bytes of parameters", function.name);
            return Err(ParseError::new(function.line, message));
        }
        params.push(Parameter { name: variable.name.clone(), offset, bytes });
        end = offset + bytes;
    }
    Ok((params, end))
}

/// The contents of shared memory.
struct Shared {
    variables: Vec<SharedVariable>,
    dynamic: u64,
    static_bytes: u64,
}

fn lay_out_shared(
    program: &Program,
    used: &FxHashSet<VariableId>,
    layout: &mut Layout,
) -> Result<Shared, ParseError> {
    let (mut packed, mut gaps) = (0, 0);
    let mut dynamic_align = 16;
    let mut variables = Vec::new();
    let all = program.variables.iter().enumerate().filter(|(_, v)| v.space == Space::Shared);
    for (number, variable) in all {
        let id = VariableId(number as u32);
        if !used.contains(&id) {
            continue;
        }
        if variable.dynamic {
            dynamic_align = dynamic_align.max(variable.align);
            continue;
        }
        packed = align(packed, variable.align);
        let gap = align(gaps, variable.align.max(GAP));
        layout.shared.insert(id, packed + gap);
        variables.push(SharedVariable {
            name: variable.name.clone(),
            offset: packed + gap,
            bytes: variable.bytes,
        });
        packed += variable.bytes;
        gaps = gap + GAP;
        if packed > 1 << 20 {
            let message = format!("`{}` and others take more than 1 MiB of shared memory", variable.name);
            return Err(ParseError::new(1, message));
        }
    }
    let gap = if variables.is_empty() { 0 } else { align(gaps, dynamic_align.max(GAP)) };
    let dynamic = align(packed, dynamic_align) + gap;
    Ok(Shared { variables, dynamic, static_bytes: packed })
}

/// Bytes of a function's frame.
fn lay_out_frame(
    program: &Program,
    id: FunctionId,
    is_entry: bool,
    layout: &mut Layout,
) -> Result<u64, ParseError> {
    let mut end = 0;
    for (number, variable) in program.variables.iter().enumerate() {
        let in_frame = match variable.space {
            Space::Local => true,
            Space::Param => !layout.params.contains_key(&VariableId(number as u32)),
            _ => false,
        };
        if variable.owner != Some(id) || !in_frame {
            continue;
        }
        end = align(end, variable.align);
        layout.locals.insert(VariableId(number as u32), end);
        end += variable.bytes;
        if end > 1 << 19 {
            let function = program.function(id);
            let message = format!(
                "`{}` takes more than the 512 KiB of local memory that a thread may have",
                function.name
            );
            return Err(ParseError::new(function.line, message));
        }
    }
    debug_assert!(is_entry || layout.functions.contains_key(&id));
    Ok(align(end, 16))
}
