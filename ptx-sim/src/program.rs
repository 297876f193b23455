//! A module of PTX after parsing: names are resolved, instructions have their form in the instruction table.

use rustc_hash::FxHashMap;

use crate::isa::table::Form;
use crate::isa::types::Type;
use crate::special::Special;

/// A register of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RegisterId(pub(crate) u32);

/// A variable of a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct VariableId(pub(crate) u32);

/// A function of a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FunctionId(pub(crate) u32);

/// Where a variable lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Space {
    Global,
    Shared,
    Constant,
    Local,
    /// Parameters: of a kernel they are constants, of other functions part of the frame.
    Param,
}

/// A variable: of the module, of a function, or a parameter.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) space: Space,
    pub(crate) bytes: u64,
    pub(crate) align: u64,
    /// Shared memory whose size the launch decides.
    pub(crate) dynamic: bool,
    /// The function that it belongs to.
    pub(crate) owner: Option<FunctionId>,
    pub(crate) initial: Vec<Initial>,
}

/// A piece of a variable's initial value; all others are zero.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Initial {
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    pub(crate) value: InitialValue,
}

/// The value of such a piece.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum InitialValue {
    Number(u64),
    /// An address, which is the same in its space and as a generic one. Bytes from `shift` of it on.
    Address {
        name: String,
        offset: i64,
        shift: u32,
    },
}

/// A formal parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Formal {
    Variable(VariableId),
    Register(RegisterId),
}

/// A constant in an instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Literal {
    Integer(u64),
    Single(u32),
    Double(u64),
}

/// From where an address counts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Base {
    Register(RegisterId),
    Variable(VariableId),
    Nothing,
}

/// An operand.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Operand {
    Register(RegisterId),
    /// `!p`
    Negated(RegisterId),
    /// `p|q`
    Pair(Box<Operand>, Box<Operand>),
    /// `_`
    Sink,
    Literal(Literal),
    Special(Special),
    Variable {
        variable: VariableId,
        offset: i64,
    },
    Function(FunctionId),
    Address {
        base: Base,
        offset: i64,
    },
    Vector(Vec<Operand>),
    List(Vec<Operand>),
    /// An instruction of the same function, by number.
    Label(u32),
    /// A list of branch targets of the same function, by number.
    Targets(u32),
    /// A prototype of an indirect call: nothing in it matters to an execution.
    Prototype,
}

/// An instruction, with its place in the table.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub(crate) line: u32,
    /// The predicate, and whether it is negated.
    pub(crate) guard: Option<(RegisterId, bool)>,
    pub(crate) form: &'static Form,
    /// The choice in each slot of the form.
    pub(crate) choices: Vec<Option<&'static str>>,
    pub(crate) operands: Vec<Operand>,
}

/// A kernel or a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: u32,
    pub(crate) is_entry: bool,
    /// Whether it was defined, not only declared.
    pub(crate) has_body: bool,
    pub(crate) returns: Vec<Formal>,
    pub(crate) params: Vec<Formal>,
    /// Declarations of registers, by their first number.
    pub(crate) registers: Vec<Registers>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) branch_targets: Vec<Vec<u32>>,
    /// `.reqntid`, if given.
    pub(crate) required_threads: Option<[u32; 3]>,
    /// `.maxntid`, if given.
    pub(crate) most_threads: Option<[u32; 3]>,
}

/// Registers that were declared together: `%r<10>` or one name.
#[derive(Clone, Debug)]
pub(crate) struct Registers {
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) ty: Type,
    pub(crate) name: String,
    pub(crate) numbered: bool,
}

impl Function {
    /// How many registers are declared.
    pub(crate) fn register_count(&self) -> u32 {
        self.registers.last().map_or(0, |last| last.first + last.count)
    }

    fn declaration(&self, id: RegisterId) -> &Registers {
        let behind = self.registers.partition_point(|declared| declared.first <= id.0);
        &self.registers[behind - 1]
    }

    /// The type with which a register was declared.
    pub(crate) fn register_type(&self, id: RegisterId) -> Type {
        self.declaration(id).ty
    }

    /// The name under which a register was declared.
    pub(crate) fn register_name(&self, id: RegisterId) -> String {
        let declared = self.declaration(id);
        if declared.numbered {
            format!("{}{}", declared.name, id.0 - declared.first)
        } else {
            declared.name.clone()
        }
    }
}

/// A module of PTX.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    /// `.version`: major and minor number.
    pub(crate) version: (u32, u32),
    /// `.target`, as written.
    pub(crate) target: String,
    pub(crate) variables: Vec<Variable>,
    pub(crate) functions: Vec<Function>,
    pub(crate) function_names: FxHashMap<String, FunctionId>,
    /// Names of files of `.file`, by number.
    pub(crate) files: FxHashMap<u64, String>,
}

impl Program {
    pub(crate) fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.0 as usize]
    }

    pub(crate) fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// Names of all kernels.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|function| function.is_entry && function.has_body)
    }
}
