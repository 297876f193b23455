//! From instructions to operations: registers get dense numbers, constants and special registers become registers that are
//! filled when a frame begins, names become addresses.

use rustc_hash::FxHashMap;

use crate::exec::lanes::Pure;
use crate::exec::op::{NONE, Op, Slot, Step, Window};
use crate::isa::check;
use crate::isa::table::Form;
use crate::isa::types::Type;
use crate::parse::ParseError;
use crate::program::{Base, Function, FunctionId, Literal, Operand, Program, RegisterId, Space, VariableId};
use crate::special::Special;

pub(crate) mod control;
pub(crate) mod convert;
pub(crate) mod copies;
pub(crate) mod float;
pub(crate) mod flow;
pub(crate) mod integer;
pub(crate) mod link;
pub(crate) mod matrix;
pub(crate) mod memory;
pub(crate) mod warp;
pub(crate) mod wmma;

/// The content of a register when its frame begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Preset {
    Constant(u64),
    Special(Special),
    /// The address of a variable in global or constant memory, and what is added to it.
    Variable(VariableId, i64),
    /// A place in the frame's local memory.
    Local(u64),
    /// The first byte of shared memory behind static variables.
    DynamicShared(i64),
}

/// A function that is ready to be executed.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) steps: Vec<Step>,
    pub(crate) presets: Vec<(Slot, Preset)>,
    /// How many registers a frame has.
    pub(crate) registers: u32,
    /// Names of the registers that were declared.
    pub(crate) names: FxHashMap<Slot, String>,
    /// Bytes of local memory of a frame.
    pub(crate) local_bytes: u64,
    pub(crate) formals: Formals,
}

/// Where a function finds its parameters and puts its results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Formals {
    pub(crate) params: Vec<FormalStorage>,
    pub(crate) returns: Vec<FormalStorage>,
}

/// A place of a formal parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FormalStorage {
    Local { offset: u64, bytes: u64 },
    Register(Slot),
}

/// Addresses that are known when a kernel is linked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) shared: FxHashMap<VariableId, u64>,
    /// Parameters of the kernel.
    pub(crate) params: FxHashMap<VariableId, u64>,
    /// Numbers of the functions that the kernel reaches.
    pub(crate) functions: FxHashMap<FunctionId, u32>,
    /// Local variables and parameters of functions, in their frames.
    pub(crate) locals: FxHashMap<VariableId, u64>,
}

/// One instruction, as a builder sees it.
pub(crate) struct Use<'a> {
    pub(crate) form: &'static Form,
    choices: &'a [Option<&'static str>],
    pub(crate) operands: &'a [Operand],
}

impl Use<'_> {
    pub(crate) fn opcode(&self) -> &'static str {
        self.form.opcode
    }

    /// The choice in a slot.
    pub(crate) fn get(&self, slot: &str) -> Option<&'static str> {
        check::choice(self.form, self.choices, slot)
    }

    pub(crate) fn has(&self, slot: &str) -> bool {
        self.get(slot).is_some()
    }

    /// The type in a slot.
    pub(crate) fn ty(&self, slot: &str) -> Result<Type, String> {
        let name = self.get(slot).ok_or_else(|| format!("the type `{slot}` is missing"))?;
        Type::named(name).ok_or_else(|| format!("`.{name}` is no type"))
    }

    pub(crate) fn operand(&self, position: usize) -> Result<&Operand, String> {
        self.operands.get(position).ok_or_else(|| format!("operand {} is missing", position + 1))
    }
}

/// Builds the operations of one function.
pub(crate) struct Build<'a> {
    pub(crate) program: &'a Program,
    pub(crate) function: &'a Function,
    pub(crate) layout: &'a Layout,
    /// Places of all functions' formal parameters.
    pub(crate) formals: &'a FxHashMap<FunctionId, (Vec<Formal>, Vec<Formal>)>,
    slots: FxHashMap<RegisterId, Slot>,
    presets: FxHashMap<Preset, Slot>,
    next: Slot,
    carry: Option<Slot>,
}

pub(crate) use crate::program::Formal;

impl<'a> Build<'a> {
    fn new(
        program: &'a Program,
        function: &'a Function,
        layout: &'a Layout,
        formals: &'a FxHashMap<FunctionId, (Vec<Formal>, Vec<Formal>)>,
    ) -> Build<'a> {
        Build {
            program,
            function,
            layout,
            formals,
            slots: FxHashMap::default(),
            presets: FxHashMap::default(),
            next: 0,
            carry: None,
        }
    }

    fn fresh(&mut self) -> Slot {
        self.next += 1;
        self.next - 1
    }

    /// The dense number of a register.
    pub(crate) fn register(&mut self, id: RegisterId) -> Slot {
        if let Some(slot) = self.slots.get(&id) {
            return *slot;
        }
        let slot = self.fresh();
        self.slots.insert(id, slot);
        slot
    }

    /// The register that holds a preset value.
    pub(crate) fn preset(&mut self, preset: Preset) -> Slot {
        if let Some(slot) = self.presets.get(&preset) {
            return *slot;
        }
        let slot = self.fresh();
        self.presets.insert(preset, slot);
        slot
    }

    pub(crate) fn constant(&mut self, value: u64) -> Slot {
        self.preset(Preset::Constant(value))
    }

    /// The hidden register of the carry.
    pub(crate) fn carry(&mut self) -> Slot {
        if let Some(slot) = self.carry {
            return slot;
        }
        let slot = self.fresh();
        self.carry = Some(slot);
        slot
    }

    /// A register that holds a source of an instruction.
    pub(crate) fn source(&mut self, operand: &Operand, ty: Type) -> Result<Slot, String> {
        Ok(match operand {
            Operand::Register(id) => self.register(*id),
            Operand::Literal(literal) => self.constant(literal_bits(ty, *literal)),
            Operand::Special(special) => self.preset(Preset::Special(*special)),
            Operand::Variable { variable, offset } => {
                let preset = self.variable_address(*variable, *offset)?;
                self.preset(preset)
            }
            Operand::Function(id) => {
                self.function_number(*id)?;
                self.constant(crate::memory::FUNCTIONS | u64::from(id.0))
            }
            _ => return Err("an operand is neither a register nor a constant".into()),
        })
    }

    /// The source at a position.
    pub(crate) fn source_at(&mut self, used: &Use<'_>, position: usize, ty: Type) -> Result<Slot, String> {
        self.source(used.operand(position)?, ty)
    }

    /// The number of a function among those that the kernel reaches.
    pub(crate) fn function_number(&self, id: FunctionId) -> Result<u32, String> {
        let known = self.layout.functions.get(&id).copied();
        known.ok_or_else(|| {
            let name = &self.program.function(id).name;
            format!("`{name}` is declared, but defined nowhere")
        })
    }

    /// The register of a destination; a fresh one for a sink.
    pub(crate) fn target(&mut self, operand: &Operand) -> Result<Slot, String> {
        match operand {
            Operand::Register(id) => Ok(self.register(*id)),
            Operand::Sink => Ok(self.fresh()),
            _ => Err("a destination has to be a register".into()),
        }
    }

    /// The destination at a position.
    pub(crate) fn target_at(&mut self, used: &Use<'_>, position: usize) -> Result<Slot, String> {
        self.target(used.operand(position)?)
    }

    /// One or two predicates as destinations; [`NONE`] for the missing second.
    pub(crate) fn pair(&mut self, operand: &Operand) -> Result<(Slot, Slot), String> {
        match operand {
            Operand::Pair(p, q) => Ok((self.target(p)?, self.target(q)?)),
            _ => Ok((self.target(operand)?, NONE)),
        }
    }

    /// A predicate, and whether it is negated.
    pub(crate) fn predicate(&mut self, operand: &Operand) -> Result<(Slot, bool), String> {
        match operand {
            Operand::Negated(id) => Ok((self.register(*id), true)),
            _ => Ok((self.source(operand, Type::Pred)?, false)),
        }
    }

    /// Registers of a vector, or of a scalar.
    pub(crate) fn targets(&mut self, operand: &Operand) -> Result<Vec<Slot>, String> {
        match operand {
            Operand::Vector(parts) => parts
                .iter()
                .map(|part| if *part == Operand::Sink { Ok(NONE) } else { self.target(part) })
                .collect(),
            Operand::Sink => Ok(vec![NONE]),
            _ => Ok(vec![self.target(operand)?]),
        }
    }

    /// Sources of a vector, or of a scalar.
    pub(crate) fn sources(&mut self, operand: &Operand, ty: Type) -> Result<Vec<Slot>, String> {
        match operand {
            Operand::Vector(parts) => parts.iter().map(|part| self.source(part, ty)).collect(),
            _ => Ok(vec![self.source(operand, ty)?]),
        }
    }

    /// Bits of a register; those of `otherwise` for anything else.
    pub(crate) fn bits(&self, operand: &Operand, otherwise: Type) -> u32 {
        match operand {
            Operand::Register(id) => self.function.register_type(*id).bits(),
            Operand::Vector(parts) => {
                let mut bits = parts.iter().map(|part| self.bits(part, otherwise));
                bits.next().unwrap_or(otherwise.bits())
            }
            _ => otherwise.bits(),
        }
    }

    /// A pure operation whose sources are the operands from position 1 on, with these types.
    pub(crate) fn pure(&mut self, used: &Use<'_>, f: Pure, types: &[Type]) -> Result<Op, String> {
        let mut from = [NONE; 4];
        for (position, ty) in types.iter().enumerate() {
            from[position] = self.source_at(used, position + 1, *ty)?;
        }
        self.finish_pure(used, f, from)
    }

    /// The same, with a constant as one more source if the function wants one.
    pub(crate) fn pure_with(
        &mut self,
        used: &Use<'_>,
        f: Pure,
        types: &[Type],
        extra: u64,
    ) -> Result<Op, String> {
        let mut from = [NONE; 4];
        for (position, ty) in types.iter().enumerate() {
            from[position] = self.source_at(used, position + 1, *ty)?;
        }
        if f.arity() == types.len() + 1 {
            from[types.len()] = self.constant(extra);
        }
        self.finish_pure(used, f, from)
    }

    fn finish_pure(&mut self, used: &Use<'_>, f: Pure, from: [Slot; 4]) -> Result<Op, String> {
        debug_assert!(from[..f.arity()].iter().all(|slot| *slot != NONE), "{}", used.opcode());
        Ok(Op::Pure { f, to: self.target_at(used, 0)?, from })
    }

    /// The address of a variable as a source.
    fn variable_address(&self, id: VariableId, offset: i64) -> Result<Preset, String> {
        let variable = self.program.variable(id);
        Ok(match variable.space {
            Space::Global | Space::Constant => Preset::Variable(id, offset),
            Space::Shared if variable.dynamic => Preset::DynamicShared(offset),
            Space::Shared => Preset::Constant(self.shared(id)?.wrapping_add_signed(offset)),
            Space::Param if self.layout.params.contains_key(&id) => {
                Preset::Constant(self.layout.params[&id].wrapping_add_signed(offset))
            }
            Space::Local | Space::Param => Preset::Local(self.local(id)?.wrapping_add_signed(offset)),
        })
    }

    fn shared(&self, id: VariableId) -> Result<u64, String> {
        self.layout.shared.get(&id).copied().ok_or_else(|| self.foreign(id))
    }

    /// The place of a variable in the frame.
    pub(crate) fn local(&self, id: VariableId) -> Result<u64, String> {
        self.layout.locals.get(&id).copied().ok_or_else(|| self.foreign(id))
    }

    fn foreign(&self, id: VariableId) -> String {
        format!("`{}` belongs to another function", self.program.variable(id).name)
    }

    /// An address in a window: the register it starts from, what is added, and the window if the name decides it.
    pub(crate) fn address(
        &mut self,
        operand: &Operand,
        window: Window,
    ) -> Result<(Slot, i64, Window), String> {
        let Operand::Address { base, offset } = operand else {
            return Err("an address in brackets is wanted".into());
        };
        match base {
            Base::Register(id) => Ok((self.register(*id), *offset, window)),
            Base::Nothing => Ok((self.constant(0), *offset, window)),
            Base::Variable(id) => {
                let preset = self.variable_address(*id, 0)?;
                let window = self.window_of(*id, window)?;
                Ok((self.preset(preset), *offset, window))
            }
        }
    }

    /// Parameters of functions are in frames, whatever the instruction calls them.
    fn window_of(&self, id: VariableId, window: Window) -> Result<Window, String> {
        let variable = self.program.variable(id);
        let lives = match variable.space {
            Space::Global => Window::Global,
            Space::Constant => Window::Constant,
            Space::Shared => Window::Shared,
            Space::Local => Window::Local,
            Space::Param if self.layout.params.contains_key(&id) => Window::Param,
            Space::Param if window == Window::Param => return Ok(Window::Local),
            Space::Param => Window::Param,
        };
        // An instruction without a space takes the variable's.
        if window == Window::Generic || window == lives {
            return Ok(lives);
        }
        Err(format!("`{}` lies in another space than the instruction says", variable.name))
    }
}

/// The bits of a constant as a source of this type.
fn literal_bits(ty: Type, literal: Literal) -> u64 {
    if ty == Type::Pred {
        return match literal {
            Literal::Integer(value) => u64::from(value != 0),
            _ => 0,
        };
    }
    crate::parse::number(ty, literal)
}

/// Builds a function of a kernel.
pub(crate) fn function(
    program: &Program,
    id: FunctionId,
    layout: &Layout,
    formals: &FxHashMap<FunctionId, (Vec<Formal>, Vec<Formal>)>,
    local_bytes: u64,
) -> Result<Code, ParseError> {
    let source = program.function(id);
    let mut build = Build::new(program, source, layout, formals);
    let places = build.formal_places(id);
    let mut steps = Vec::with_capacity(source.instructions.len() + 1);
    for instruction in &source.instructions {
        let used =
            Use { form: instruction.form, choices: &instruction.choices, operands: &instruction.operands };
        let op = (instruction.form.build)(&mut build, &used).map_err(|message| {
            ParseError::new(instruction.line, format!("`{}`: {message}", used.opcode()))
        })?;
        let (guard, negated) = match instruction.guard {
            Some((id, negated)) => (build.register(id), negated),
            None => (NONE, false),
        };
        steps.push(Step { op, guard, negated, line: instruction.line });
    }
    // A body may end without `ret`.
    let line = steps.last().map_or(source.line, |step| step.line);
    steps.push(Step { op: Op::Return, guard: NONE, negated: false, line });
    flow::set_meeting_points(&mut steps);
    let names = build.slots.iter().map(|(id, slot)| (*slot, source.register_name(*id))).collect();
    Ok(Code {
        steps,
        presets: build.presets.iter().map(|(preset, slot)| (*slot, *preset)).collect(),
        registers: build.next,
        names,
        local_bytes,
        formals: places,
    })
}

impl Build<'_> {
    /// Where the formal parameters of this function are.
    fn formal_places(&mut self, id: FunctionId) -> Formals {
        let Some((params, returns)) = self.formals.get(&id) else { return Formals::default() };
        let mut place = |formal: &Formal| match formal {
            Formal::Register(id) => FormalStorage::Register(self.register(*id)),
            Formal::Variable(id) => FormalStorage::Local {
                offset: self.layout.locals.get(id).copied().unwrap_or(0),
                bytes: self.program.variable(*id).bytes,
            },
        };
        Formals {
            params: params.iter().map(&mut place).collect(),
            returns: returns.iter().map(&mut place).collect(),
        }
    }
}
