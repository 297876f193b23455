//! Initialisation, version, names of errors, and the settings of this driver.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr;

use super::{put, text};
use crate::code::{self, Code, Outcome};
use crate::driver;

// SAFETY: no other function has this name of the driver's.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuInit(flags: c_uint) -> Code {
    driver::with(|driver| if flags == 0 { driver.initialise() } else { Err(Code::InvalidValue) })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Code {
    // SAFETY: the program passes a place for the result.
    driver::with(|driver| unsafe { put(version, driver.version()? as c_int) })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(error: c_uint, name: *mut *const c_char) -> Code {
    // SAFETY: the program passes a place for the result.
    unsafe { put_description(name, code::describe(error).map(|(name, _)| name)) }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(error: c_uint, text: *mut *const c_char) -> Code {
    // SAFETY: the program passes a place for the result.
    unsafe { put_description(text, code::describe(error).map(|(_, text)| text)) }
}

/// Gives a text about a code, or a null pointer for an unknown one.
///
/// # Safety
/// The place has to be null or writable.
unsafe fn put_description(place: *mut *const c_char, text: Option<&'static CStr>) -> Code {
    let pointer = text.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: the caller promises it.
    let outcome = unsafe { put(place, pointer) };
    match outcome.and(text.map(|_| ()).ok_or(Code::InvalidValue)) {
        Ok(()) => Code::Success,
        Err(code) => code,
    }
}

/// Replaces the settings, which come from the environment otherwise. It has to be called before `cuInit`.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn tilewright_mock_configure(settings: *const c_char) -> Code {
    // SAFETY: the program passes a string that ends in a zero byte.
    driver::with(|driver| -> Outcome { driver.configure(unsafe { text(settings) }?) })
}
