//! Modules, functions, launches.

use std::ffi::{CString, c_void};

use cudarc::driver::sys::{self, CUfunction_attribute_enum as Attribute, CUresult as Code};
use cudarc::driver::{CudaContext, result};

use crate::support::{Loaded, OTHER, SCALE, SOUND, address, code, context, launch};

#[test]
fn kernels_are_executed() {
    let context = context(SOUND);
    let stream = context.default_stream();
    let module = Loaded::new(&context, SCALE).expect("it is right");
    let scale = module.function("scale").expect("it is there");
    let values: Vec<u32> = (0..1000).collect();
    let data = stream.clone_htod(&values).expect("it fits");
    launch(&stream, scale, 1000, address(&data, &stream), &[3, 1000]).expect("it is right");
    let expected: Vec<u32> = values.iter().map(|value| 3 * value).collect();
    assert_eq!(stream.clone_dtoh(&data).expect("it is there"), expected);
}

/// The error log names the line.
#[test]
fn errors_of_modules_are_in_the_log() {
    let context = context(SOUND);
    context.bind_to_thread().expect("nothing failed");
    for (text, wanted, part) in [
        (SCALE.replace("mad.lo.u32", "mad.low.u32"), Code::CUDA_ERROR_INVALID_PTX, "line 9; error"),
        (
            SCALE.replace(".version 8.0", ".version 8.7"),
            Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
            "PTX 8.7 is newer than 8.4",
        ),
        (SCALE.replace("sm_80", "sm_90"), Code::CUDA_ERROR_INVALID_PTX, "sm_90 does not run on sm_80"),
        ("nonsense".into(), Code::CUDA_ERROR_INVALID_PTX, "line 1; error"),
    ] {
        let (code, log) = load_with_log(&text);
        assert_eq!(code, wanted, "{log}");
        assert!(log.contains(part), "{log}");
    }
    let (code, log) = load_with_log(SCALE);
    assert_eq!((code, log.as_str()), (Code::CUDA_SUCCESS, ""));
    let (code, _) = load_with_log("\x7fELF\x02");
    assert_eq!(code, Code::CUDA_ERROR_INVALID_IMAGE);
}

/// Code for an older device runs on a newer one.
#[test]
fn newer_devices_run_code_for_older_ones() {
    let context = context(OTHER);
    Loaded::new(&context, SCALE).expect("sm_90 runs code for sm_80");
    Loaded::new(&context, &SCALE.replace("sm_80", "sm_90a")).expect("and its own");
}

fn load_with_log(text: &str) -> (Code, String) {
    let text = CString::new(text).expect("it has no zero byte");
    let mut log = vec![0_u8; 4096];
    let mut options =
        [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), log.len() as *mut c_void];
    let mut module = std::ptr::null_mut();
    // SAFETY: the text ends in a zero byte, and the buffer is as long as the options say.
    let code = unsafe {
        sys::cuModuleLoadDataEx(
            &mut module,
            text.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    if code == Code::CUDA_SUCCESS {
        // SAFETY: it was loaded.
        unsafe { result::module::unload(module) }.expect("it is loaded");
    }
    log.truncate(log.iter().position(|byte| *byte == 0).expect("the log ends"));
    (code, String::from_utf8(log).expect("it is text"))
}

#[test]
fn functions_have_attributes_and_limits() {
    let context = context(SOUND);
    let text = SCALE.replace("mov.u32 %r3, %ctaid.x;", "mov.u32 %r3, tile; mov.u32 %r3, %ctaid.x;");
    let text = text.replace(".reg .pred %p;", ".reg .pred %p; .shared .b8 tile[1024]; .local .b8 own[16];");
    let module = Loaded::new(&context, &text).expect("it is right");
    let scale = module.function("scale").expect("it is there");
    // SAFETY: the function is loaded.
    let get = |attribute| unsafe { result::function::get_function_attribute(scale, attribute) };
    // SAFETY: as above.
    let set = |attribute, value| unsafe { result::function::set_function_attribute(scale, attribute, value) };
    let dynamic = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    assert_eq!(get(dynamic).expect("it is known"), 47 << 10);
    assert_eq!(code(set(dynamic, 163 << 10)), Code::CUDA_ERROR_INVALID_VALUE);
    set(dynamic, 100 << 10).expect("it fits");
    assert_eq!(get(dynamic).expect("it is known"), 100 << 10);
    assert_eq!(get(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK).expect("it is known"), 1024);
    assert_eq!(get(Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION).expect("it is known"), 80);
    assert_eq!(code(get(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)), Code::CUDA_ERROR_NOT_SUPPORTED);
    assert_eq!(code(module.function("other")), Code::CUDA_ERROR_NOT_FOUND);
}

#[test]
fn launches_beyond_limits_are_refused() {
    let context = context(SOUND);
    let stream = context.default_stream();
    let module = Loaded::new(&context, SCALE).expect("it is right");
    let scale = module.function("scale").expect("it is there");
    let (data, number) = (0_u64, 0_u32);
    let mut params: [*mut c_void; 3] = [
        (&raw const data).cast_mut().cast(),
        (&raw const number).cast_mut().cast(),
        (&raw const number).cast_mut().cast(),
    ];
    let mut refused = |grid, block, shared| {
        // SAFETY: the kernel takes these parameters.
        let result =
            unsafe { result::launch_kernel(scale, grid, block, shared, stream.cu_stream(), &mut params) };
        assert_eq!(code(result), Code::CUDA_ERROR_INVALID_VALUE);
    };
    refused((0, 1, 1), (1, 1, 1), 0);
    refused((1, 65_536, 1), (1, 1, 1), 0);
    refused((1, 1, 1), (1025, 1, 1), 0);
    refused((1, 1, 1), (1, 1, 65), 0);
    refused((1, 1, 1), (1, 1, 1), (48 << 10) + 1);
    stream.synchronize().expect("none of these ends the context");
}

#[test]
fn variables_have_addresses() {
    let context = context(SOUND);
    let text = format!("{SCALE} .global .align 4 .u32 table[3] = {{7, 8, 9}};");
    let module = Loaded::new(&context, &text).expect("it is right");
    let (mut start, mut bytes) = (0, 0);
    let name = CString::new("table").expect("it has no zero byte");
    // SAFETY: the module is loaded, and the name ends in a zero byte.
    let code = unsafe { sys::cuModuleGetGlobal_v2(&mut start, &mut bytes, module.module, name.as_ptr()) };
    assert_eq!((code, bytes), (Code::CUDA_SUCCESS, 12));
    let mut words = [0_u32; 3];
    // SAFETY: the variable has as many bytes.
    unsafe { result::memcpy_dtoh_sync(&mut words, start) }.expect("it is there");
    assert_eq!(words, [7, 8, 9]);
}

/// Threads use one context at a time, each with a stream of its own.
#[test]
fn many_threads_use_one_device() {
    let shared = context(SOUND);
    let module = Loaded::new(&shared, SCALE).expect("it is right");
    let scale = module.function("scale").expect("it is there") as usize;
    std::thread::scope(|scope| {
        for factor in 2..6 {
            let context = CudaContext::new(SOUND).expect("the device is there");
            scope.spawn(move || {
                let stream = context.new_stream().expect("streams can be made");
                let data = stream.clone_htod(&[1_u32; 64]).expect("it fits");
                for _ in 0..5 {
                    launch(&stream, scale as sys::CUfunction, 64, address(&data, &stream), &[factor, 64])
                        .expect("it is right");
                }
                assert_eq!(stream.clone_dtoh(&data).expect("it is there"), [factor.pow(5); 64]);
            });
        }
    });
}
