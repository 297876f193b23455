//! Drivers that cannot be used: each in a process of its own, since a process loads one driver.

use std::process::Command;

use tilewright_gpu::{DRIVER_VARIABLE, Gpu};

/// Opens a GPU in another process with this driver and these settings of it, and gives the message.
fn message(driver: &str, settings: &str) -> String {
    let program = std::env::current_exe().expect("it is running");
    let output = Command::new(program)
        .args(["--exact", "opens_a_gpu", "--ignored", "--nocapture"])
        .env(DRIVER_VARIABLE, driver)
        .env(tilewright_mock_cuda::VARIABLE, settings)
        .output()
        .expect("it can be started");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The work of the other processes.
#[test]
#[ignore = "other tests start it in processes of their own"]
fn opens_a_gpu() {
    match Gpu::open(0) {
        Ok(gpu) => println!("opened {} of {}", gpu.product(), Gpu::count().expect("it was opened")),
        Err(error) => println!("{error}"),
    }
}

#[test]
fn a_driver_that_cannot_be_used_says_what_to_do() {
    let mock = tilewright_mock_cuda::library().expect("the mock driver is built with the tests");
    let mock = mock.to_str().expect("its path is text");
    for (driver, settings, part) in [
        (mock, "", "opened Simulated GPU of 1"),
        (
            mock,
            "devices=0",
            "the CUDA driver cannot be used: it finds no GPU: see whether `nvidia-smi` lists one",
        ),
        (
            mock,
            "driver=11080",
            "it knows CUDA 11.8, and 12.0 is needed: install NVIDIA's driver of version 525",
        ),
        (mock, "nonsense", "it does not tell its version"),
        ("/nowhere/libcuda.so", "", "the CUDA driver cannot be used: /nowhere/libcuda.so cannot be loaded"),
    ] {
        let message = message(driver, settings);
        assert!(message.contains(part), "{settings}: {message}");
    }
}
