//! The contract of leaves, checked while they run: what a call leaves in the registers of its caller.

use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};

use super::contract::{EXAMPLES, SAVED, leaf_of};
use crate::machine::Machine;
use crate::simd::{INPUTS, Leaf, VectorExtension};

/// The contents of the caller's registers before a call.
const MARKS: [u64; 6] = [0x1111_0001, 0x2222_0002, 0x3333_0003, 0x4444_0004, 0x5555_0005, 0x6666_0006];

/// The components of the processor's state that are the upper halves of registers 0 to 15: those of 256 bits, and those of 512
/// bits (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 13).
const UPPER_HALVES: u64 = 1 << 2 | 1 << 6;

/// The state after a call.
#[repr(C)]
#[derive(Debug, Default)]
struct Report {
    saved: [u64; 6],
    /// The result of the called function.
    result: u64,
    /// The components of the state that are in use.
    in_use: u64,
}

/// Machine code that can be called.
struct Callable {
    mapping: *mut libc::c_void,
    length: usize,
}

impl Callable {
    fn new(code: &[u8]) -> Self {
        let length = code.len().next_multiple_of(4096);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new anonymous mapping, large enough for the code, which is copied before it becomes executable.
        let mapping = unsafe {
            let mapping = libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0);
            assert_ne!(mapping, libc::MAP_FAILED);
            std::ptr::copy_nonoverlapping(code.as_ptr(), mapping.cast(), code.len());
            assert_eq!(libc::mprotect(mapping, length, libc::PROT_READ | libc::PROT_EXEC), 0);
            mapping
        };
        Callable { mapping, length }
    }
}

impl Drop for Callable {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing runs in it.
        unsafe { libc::munmap(self.mapping, self.length) };
    }
}

fn assembled(instructions: &[Instruction]) -> Vec<u8> {
    let mut encoder = Encoder::new(64);
    let mut position = 0;
    for instruction in instructions {
        position += encoder.encode(instruction, position).expect("an instruction of the test") as u64;
    }
    encoder.take_buffer()
}

/// A function of a function's address, of what that is called with, and of the place of a report: it marks the
/// registers that belong to the caller, calls, and reports what they hold then and, if it is to ask, which components of
/// the state are in use.
fn trampoline(asks: bool) -> Vec<u8> {
    use Register::{EAX, ECX, RAX, RDI, RDX, RSI};
    let mut code = Vec::new();
    let push = |register| Instruction::with1(Code::Push_r64, register).unwrap();
    let pop = |register| Instruction::with1(Code::Pop_r64, register).unwrap();
    let copy = |to, from| Instruction::with2(Code::Mov_r64_rm64, to, from).unwrap();
    let report = |base, position: usize, register| {
        let place = MemoryOperand::with_base_displ(base, 8 * position as i64);
        Instruction::with2(Code::Mov_rm64_r64, place, register).unwrap()
    };
    // With the return address, six registers and the report's place the stack stays aligned to 16 bytes.
    code.extend(SAVED.map(push));
    code.push(push(RDX));
    code.push(copy(RAX, RDI));
    code.push(copy(RDI, RSI));
    for (register, mark) in SAVED.into_iter().zip(MARKS) {
        code.push(Instruction::with2(Code::Mov_r64_imm64, register, mark).unwrap());
    }
    code.push(Instruction::with1(Code::Call_rm64, RAX).unwrap());
    code.push(pop(RSI));
    for (position, register) in SAVED.into_iter().chain([RAX]).enumerate() {
        code.push(report(RSI, position, register));
    }
    if asks {
        code.push(Instruction::with2(Code::Mov_r32_imm32, ECX, 1).unwrap());
        code.push(Instruction::with(Code::Xgetbv));
        code.push(Instruction::with2(Code::Mov_r32_rm32, EAX, EAX).unwrap());
        code.push(report(RSI, SAVED.len() + 1, RAX));
    }
    code.push(Instruction::with(Code::VEX_Vzeroupper));
    code.extend(SAVED.into_iter().rev().map(pop));
    code.push(Instruction::with(Code::Retnq));
    assembled(&code)
}

/// Calls machine code with the address of words.
fn called(code: &[u8], words: &mut [u64]) -> Report {
    let asks = tells_what_is_in_use();
    let (trampoline, function) = (Callable::new(&trampoline(asks)), Callable::new(code));
    let mut report = Report::default();
    type Trampoline = unsafe extern "C" fn(*const libc::c_void, *mut u64, *mut Report);
    // SAFETY: the trampoline follows the C calling convention whatever the called function leaves in the registers that it
    // saves, and asks for the state only where the processor answers; the function is of the host's instructions, and
    // reads and writes the words and the buffers that they point to, which outlive the call.
    unsafe {
        let call = std::mem::transmute::<*mut libc::c_void, Trampoline>(trampoline.mapping);
        call(function.mapping, words.as_mut_ptr(), &mut report);
    }
    report
}

/// Whether the processor says which components of its state are in use: bit 2 of `EAX` of leaf 13, sub-leaf 1.
fn tells_what_is_in_use() -> bool {
    std::arch::x86_64::__cpuid_count(13, 1).eax & 1 << 2 != 0
}

/// Calls a leaf with dimensions of 16 and buffers that are large enough for them.
fn called_leaf(leaf: &Leaf) -> Report {
    const BUFFER_BYTES: usize = 1 << 16;
    let mut memory = vec![0u64; leaf.inputs.len() * BUFFER_BYTES / 8];
    let base = memory.as_mut_ptr() as u64;
    let mut words = vec![0u64; INPUTS as usize / 8];
    for (position, input) in leaf.inputs.iter().enumerate() {
        words.push(match input {
            crate::simd::Input::Buffer(_) => base + (position * BUFFER_BYTES) as u64,
            crate::simd::Input::Var(_) | crate::simd::Input::Scalar(_) => 16,
        });
    }
    called(&leaf.code, &mut words)
}

#[test]
fn a_leaf_leaves_its_callers_registers_and_no_upper_halves() {
    let machine = Machine::host().expect("no override");
    let Some(widest) = VectorExtension::of(machine) else { return };
    for extension in [VectorExtension::Avx2, VectorExtension::Avx512] {
        if extension.bytes() > widest.bytes() {
            continue;
        }
        for text in EXAMPLES {
            let leaf = leaf_of(text, extension).expect("a leaf");
            let report = called_leaf(&leaf);
            let name = &text[7..text.find('(').unwrap_or(7)];
            assert_eq!(report.saved, MARKS, "{name} with {extension:?}");
            assert_eq!(report.result, 0, "{name} with {extension:?}");
            if tells_what_is_in_use() {
                assert_eq!(report.in_use & UPPER_HALVES, 0, "{name} with {extension:?}: {report:?}");
            }
        }
    }
}

#[test]
fn the_check_sees_what_a_bad_leaf_does() {
    let machine = Machine::host().expect("no override");
    if VectorExtension::of(machine).is_none() {
        return;
    }
    for (position, register) in SAVED.into_iter().enumerate() {
        let code = [
            Instruction::with2(Code::Mov_r64_imm64, register, 7u64).unwrap(),
            Instruction::with(Code::Retnq),
        ];
        let report = called(&assembled(&code), &mut []);
        let mut expected = MARKS;
        expected[position] = 7;
        assert_eq!(report.saved, expected);
    }
    let ones = Instruction::with3(
        Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256,
        Register::YMM0,
        Register::YMM0,
        Register::YMM0,
    );
    let dirty = called(&assembled(&[ones.unwrap(), Instruction::with(Code::Retnq)]), &mut []);
    assert!(!tells_what_is_in_use() || dirty.in_use & UPPER_HALVES != 0, "{dirty:?}");
}
