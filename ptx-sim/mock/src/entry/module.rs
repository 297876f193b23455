//! Modules, functions and launches.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs;

use super::{Object, export, put, text};
use crate::code::{Code, Outcome};
use crate::driver::{Driver, Extents, FunctionAttribute, Handle};

/// Options of `CUjit_option` that are used here.
const ERROR_LOG: c_uint = 5;
const ERROR_LOG_BYTES: c_uint = 6;
/// The number of options that there are.
const OPTIONS: c_uint = 40;

/// Marks of `extra`, as `cuda.h` defines them.
const PARAMS_POINTER: usize = 1;
const PARAMS_SIZE: usize = 2;

/// The launch configuration of `cuLaunchKernelEx`.
#[repr(C)]
struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: Object,
    attributes: *mut c_void,
    attribute_count: c_uint,
}

export! {
    cuModuleLoad(module: *mut Object, file: *const c_char) |driver| {
        // SAFETY: the program passes a string that ends in a zero byte.
        let name = unsafe { text(file) }?;
        let image = fs::read_to_string(name).map_err(|_| Code::FileNotFound)?;
        let handle = driver.load_module(&image, &mut String::new())?;
        // SAFETY: the program passes a place for the result.
        unsafe { put(module, handle.to_pointer()) }
    }

    cuModuleLoadData(module: *mut Object, image: *const c_void) |driver| {
        // SAFETY: the program passes the text of a module, which ends in a zero byte.
        let handle = driver.load_module(unsafe { ptx(image) }?, &mut String::new())?;
        // SAFETY: as above.
        unsafe { put(module, handle.to_pointer()) }
    }

    cuModuleLoadDataEx(
        module: *mut Object, image: *const c_void, count: c_uint, options: *mut c_uint, values: *mut *mut c_void,
    ) |driver| {
        // SAFETY: as above.
        let image = unsafe { ptx(image) }?;
        let mut log = String::new();
        let loaded = driver.load_module(image, &mut log);
        // SAFETY: the program passes `count` options and values.
        unsafe { give_log(count as usize, options, values, &log) }?;
        // SAFETY: as above.
        unsafe { put(module, loaded?.to_pointer()) }
    }

    cuModuleUnload(module: Object) |driver| { driver.unload_module(Handle::of(module)) }

    cuModuleGetFunction(function: *mut Object, module: Object, name: *const c_char) |driver| {
        // SAFETY: as above.
        let handle = driver.function(Handle::of(module), unsafe { text(name) }?)?;
        // SAFETY: as above.
        unsafe { put(function, handle.to_pointer()) }
    }

    cuModuleGetGlobal_v2(address: *mut u64, bytes: *mut usize, module: Object, name: *const c_char) |driver| {
        // SAFETY: as above.
        let (start, size) = driver.variable(Handle::of(module), unsafe { text(name) }?)?;
        // SAFETY: as above. Either place may be missing.
        unsafe {
            if !address.is_null() {
                put(address, start)?;
            }
            if !bytes.is_null() {
                put(bytes, size as usize)?;
            }
        }
        Ok(())
    }

    cuFuncGetAttribute(value: *mut c_int, attribute: c_uint, function: Object) |driver| {
        let found = driver.function_attribute(Handle::of(function), FunctionAttribute::of(attribute)?)?;
        // SAFETY: as above.
        unsafe { put(value, found) }
    }

    cuFuncSetAttribute(function: Object, attribute: c_uint, value: c_int) |driver| {
        driver.set_function_attribute(Handle::of(function), FunctionAttribute::of(attribute)?, value)
    }

    // There are no caches.
    cuFuncSetCacheConfig(function: Object, config: c_uint) |driver| {
        driver.parameters(Handle::of(function))?;
        if config > 3 { Err(Code::InvalidValue) } else { Ok(()) }
    }

    cuLaunchKernel(
        function: Object,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared_bytes: c_uint, stream: Object, params: *mut *mut c_void, extra: *mut *mut c_void,
    ) |driver| {
        let extents =
            Extents { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], shared_bytes };
        // SAFETY: the program passes what the kernel takes.
        unsafe { launch(driver, function, extents, stream, params, extra) }
    }

    cuLaunchKernelEx(
        config: *const LaunchConfig, function: Object, params: *mut *mut c_void, extra: *mut *mut c_void,
    ) |driver| {
        if config.is_null() {
            return Err(Code::InvalidValue);
        }
        // SAFETY: the program passes a description of a launch.
        let LaunchConfig { grid, block, shared_bytes, stream, attribute_count, .. } =
            unsafe { config.read_unaligned() };
        // Clusters and the like would change what the kernel does.
        if attribute_count > 0 {
            return Err(Code::NotSupported);
        }
        // SAFETY: as above.
        unsafe { launch(driver, function, Extents { grid, block, shared_bytes }, stream, params, extra) }
    }

    // The simulator runs as many blocks beside each other as wait for each other.
    cuLaunchCooperativeKernel(
        function: Object,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared_bytes: c_uint, stream: Object, params: *mut *mut c_void,
    ) |driver| {
        let extents =
            Extents { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], shared_bytes };
        // SAFETY: as above.
        unsafe { launch(driver, function, extents, stream, params, std::ptr::null_mut()) }
    }
}

/// The text of a module. Machine code cannot be executed here.
///
/// # Safety
/// The pointer has to be null, or one to bytes that end in a zero byte.
unsafe fn ptx<'a>(image: *const c_void) -> Outcome<&'a str> {
    if image.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: the caller promises it. Machine code begins with four bytes that are no zeros, and is not read further.
    let bytes = unsafe { CStr::from_ptr(image.cast()) }.to_bytes();
    let is_machine_code = bytes.starts_with(b"\x7fELF") || bytes.starts_with(&[0x50, 0xed, 0x55, 0xba]);
    if is_machine_code {
        return Err(Code::InvalidImage);
    }
    std::str::from_utf8(bytes).map_err(|_| Code::InvalidImage)
}

/// Writes a log where the options of a load want it, and checks them.
///
/// # Safety
/// `options` and `values` have to have `count` elements, and the buffer of the log the size that the options state.
unsafe fn give_log(count: usize, options: *mut c_uint, values: *mut *mut c_void, log: &str) -> Outcome {
    if count == 0 {
        return Ok(());
    }
    if options.is_null() || values.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: the caller promises it.
    let (options, values) = unsafe {
        (std::slice::from_raw_parts(options, count), std::slice::from_raw_parts_mut(values, count))
    };
    if options.iter().any(|option| *option >= OPTIONS) {
        return Err(Code::InvalidValue);
    }
    let find = |wanted: c_uint| options.iter().position(|option| *option == wanted);
    let (Some(buffer), Some(size)) = (find(ERROR_LOG), find(ERROR_LOG_BYTES)) else { return Ok(()) };
    // A value of 32 bits is stored in the place of the pointer.
    let room = values[size] as usize & u32::MAX as usize;
    let target = values[buffer].cast::<u8>();
    if target.is_null() || room == 0 {
        return Ok(());
    }
    let bytes = &log.as_bytes()[..log.len().min(room - 1)];
    // SAFETY: the caller promises that the buffer has the stated size; the text and its zero byte fit into it.
    unsafe {
        target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        target.add(bytes.len()).write(0);
    }
    values[size] = bytes.len() as *mut c_void;
    Ok(())
}

/// Launches a kernel with parameters in either of the two forms.
///
/// # Safety
/// There has to be a pointer for each parameter of the kernel, or a buffer with all of them.
unsafe fn launch(
    driver: &mut Driver,
    function: Object,
    extents: Extents,
    stream: Object,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Outcome {
    let function = Handle::of(function);
    let (places, bytes) = driver.parameters(function)?;
    let given = match (params.is_null(), extra.is_null()) {
        (false, false) => return Err(Code::InvalidValue),
        // SAFETY: the caller promises it.
        (true, false) => unsafe { packed(extra) }?,
        (true, true) if places.is_empty() => Vec::new(),
        (true, true) => return Err(Code::InvalidValue),
        // SAFETY: the caller promises it.
        (false, true) => unsafe { gather(&places, bytes, params) }?,
    };
    driver.launch(function, extents, given, Handle::of(stream))
}

/// The bytes of parameters that are passed one by one.
///
/// # Safety
/// There has to be a pointer for each parameter, to as many bytes as it has.
unsafe fn gather(places: &[(u64, u64)], total: u64, params: *mut *mut c_void) -> Outcome<Vec<u8>> {
    let mut given = vec![0; total as usize];
    for (number, (offset, bytes)) in places.iter().enumerate() {
        // SAFETY: the caller promises it.
        let value = unsafe { params.add(number).read() }.cast::<u8>();
        if value.is_null() {
            return Err(Code::InvalidValue);
        }
        let target = &mut given[*offset as usize..(*offset + *bytes) as usize];
        // SAFETY: as above.
        unsafe { target.as_mut_ptr().copy_from_nonoverlapping(value, target.len()) };
    }
    Ok(given)
}

/// The bytes of parameters that are passed in one buffer.
///
/// # Safety
/// `extra` has to be a list of marks and values that ends in a null pointer.
unsafe fn packed(extra: *mut *mut c_void) -> Outcome<Vec<u8>> {
    let (mut buffer, mut size) = (std::ptr::null::<u8>(), 0);
    let mut at = extra;
    loop {
        // SAFETY: the caller promises that the list goes on until a null pointer.
        let (mark, value) = unsafe {
            let mark = at.read() as usize;
            if mark == 0 {
                break;
            }
            (mark, at.add(1).read())
        };
        match mark {
            PARAMS_POINTER => buffer = value.cast_const().cast(),
            // SAFETY: the value of this mark is a pointer to the size.
            PARAMS_SIZE if !value.is_null() => size = unsafe { value.cast::<usize>().read() },
            _ => return Err(Code::InvalidValue),
        }
        // SAFETY: as above.
        at = unsafe { at.add(2) };
    }
    if buffer.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: the program passes a buffer of this size.
    Ok(unsafe { std::slice::from_raw_parts(buffer, size) }.to_vec())
}
