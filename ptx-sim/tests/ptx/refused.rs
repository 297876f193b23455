//! PTX that the simulator does not know is an error with its line; nothing is ignored.

use tilewright_ptx_sim::Module;

use crate::support::module_for;

/// The error of a module with this body, whose instructions begin in line 7.
#[track_caller]
fn refused(body: &str, line: u32, part: &str) {
    let text = module_for(
        "sm_90",
        &format!(
            ".visible .entry k(.param .u64 a) {{
            .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .f32 %f<16>;
            ld.param.u64 %rd1, [a];
            {body}
            ret; }}"
        ),
    );
    let refused: Result<(), _> = Module::parse(&text).and_then(|module| match module.kernel("k") {
        Err(tilewright_ptx_sim::LaunchError::Code(error)) => Err(error),
        other => panic!("{other:?}"),
    });
    let error = refused.expect_err("it is not known");
    assert_eq!(error.line, line, "{error}");
    assert!(error.message.contains(part), "{error}");
}

#[test]
fn instructions_that_are_not_known() {
    refused("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd1];", 7, "tcgen05");
    refused("txq.width.b32 %r1, [%rd1];", 7, "txq");
    refused("\nwgmma.fence.sync.aligned;", 8, "wgmma");
}

#[test]
fn modifiers_that_are_not_known() {
    refused("wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1}, [%rd1];", 7, "m8n8k32");
    refused("add.sat.u32 %r1, %r2, %r3;", 7, "sat");
    refused("ld.global.b128 %rd1, [%rd1];", 7, "b128");
    refused("ld.global.u32.fast %r1, [%rd1];", 7, "fast");
}
