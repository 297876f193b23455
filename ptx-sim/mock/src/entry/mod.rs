//! The exported functions, one file for each chapter of the driver's manual.
//!
//! Their names, arguments and results are those of `cuda.h`. A pointer of the program is used only where the
//! driver's manual allows it; handles are looked up and never followed. A null pointer for a result is an error code.

#![allow(non_snake_case)]

mod capture;
mod context;
mod device;
mod event;
mod general;
mod memory;
mod module;
mod stream;
mod unsupported;

use std::ffi::{CStr, c_char, c_void};

use crate::code::{Code, Outcome};

/// A handle as programs pass it.
type Object = *mut c_void;

/// Exports functions that need an initialised driver: `name(arguments) |driver| { … }`.
macro_rules! export {
    ($($name:ident($($argument:ident: $ty:ty),* $(,)?) |$driver:ident| $body:block)*) => {
        $(
            // SAFETY: no other function has a name of the driver's. The pointers are used as its manual lets them be.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $ty),*) -> $crate::code::Code {
                $crate::driver::with_initialised(|$driver| $body)
            }
        )*
    };
}

use export;

/// Writes a result where the program wants it.
///
/// # Safety
/// The place has to be null or writable.
unsafe fn put<T>(place: *mut T, value: T) -> Outcome {
    if place.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: the caller promises it. Programs may have the place unaligned inside of packed structures.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// The text that a program passes.
///
/// # Safety
/// The pointer has to be null, or one to a string that ends in a zero byte.
unsafe fn text<'a>(pointer: *const c_char) -> Outcome<&'a str> {
    if pointer.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: the caller promises it.
    unsafe { CStr::from_ptr(pointer) }.to_str().map_err(|_| Code::InvalidValue)
}
