//! Kernels of one warp that make some words of some others, on a GPU and in the simulator.

use std::ffi::{CString, c_void};

use cudarc::driver::{CudaContext, DriverError, result};
use tilewright_ptx_sim::{Launch, Memory, Module, Options};

/// Threads of a warp.
pub(crate) const LANES: usize = 32;

/// Instructions that each lane executes: they make the words `%o0`, `%o1` … of the words `%i0`, `%i1` ….
pub(crate) struct Case {
    pub(crate) name: String,
    /// The oldest architecture that has them.
    pub(crate) architecture: u32,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) body: String,
}

impl Case {
    /// The text of the module.
    fn text(&self) -> String {
        let declare = |name: &str, count: usize| {
            let list: Vec<String> = (0..count).map(|number| format!("%{name}{number}")).collect();
            format!(".reg .b32 {};", list.join(", "))
        };
        let moves = |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
        format!(
            ".version 8.0\n.target sm_{}\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {{
    .shared .align 16 .b8 tile[1024];
    .reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<16>, %lane, %tile; .reg .b64 %rd<16>, %in, %out;
    .reg .f32 %f<16>; .reg .f64 %d<16>;
    {}
    {}
    ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %lane, %tid.x; mov.u32 %tile, tile;
    mad.wide.u32 %in, %lane, {}, %in; mad.wide.u32 %out, %lane, {}, %out;
{}    {}
{}    ret;
}}
",
            self.architecture,
            declare("i", self.inputs),
            declare("o", self.outputs),
            4 * self.inputs,
            4 * self.outputs,
            moves(self.inputs, &|n| format!("    ld.global.u32 %i{n}, [%in+{}];\n", 4 * n)),
            self.body,
            moves(self.outputs, &|n| format!("    st.global.u32 [%out+{}], %o{n};\n", 4 * n)),
        )
    }

    /// The outputs by the simulator.
    pub(crate) fn simulate(&self, inputs: &[u32]) -> Result<Vec<u32>, String> {
        let module = Module::parse(&self.text()).map_err(|error| error.to_string())?;
        let mut memory = Memory::default();
        let from = memory.allocate_with(&bytes_of(inputs), "inputs").map_err(|error| error.to_string())?;
        let bytes = (4 * LANES * self.outputs) as u64;
        let to = memory.allocate(bytes, "outputs").map_err(|error| error.to_string())?;
        let params = [from.to_le_bytes(), to.to_le_bytes()].concat();
        let launch = Launch { block: [LANES as u32, 1, 1], params, ..Launch::default() };
        let report =
            module.run("k", &launch, &mut memory, &Options::default()).map_err(|error| error.to_string())?;
        if let Some(finding) = report.findings.first() {
            return Err(format!("line {}: {}", finding.line, finding.message));
        }
        Ok(words_of(memory.read(to, bytes).map_err(|error| error.to_string())?))
    }

    /// The outputs by a GPU.
    pub(crate) fn run(&self, context: &CudaContext, inputs: &[u32]) -> Result<Vec<u32>, String> {
        self.launch(context, inputs).map_err(|error| error.to_string())
    }

    fn launch(&self, context: &CudaContext, inputs: &[u32]) -> Result<Vec<u32>, DriverError> {
        context.bind_to_thread()?;
        let text = CString::new(self.text()).unwrap_or_default();
        let mut outputs = vec![0_u32; LANES * self.outputs];
        // SAFETY: the text ends in a zero byte; the kernel takes two addresses and accesses as many words of each as the buffers
        // have; everything is done when the synchronous copy back is.
        unsafe {
            let module = result::module::load_data(text.as_ptr().cast())?;
            let kernel = result::module::get_function(module, c"k".into())?;
            let from = result::malloc_sync(size_of_val(inputs))?;
            let to = result::malloc_sync(size_of_val(&outputs[..]))?;
            result::memcpy_htod_sync(from, inputs)?;
            let mut params: [*mut c_void; 2] =
                [(&raw const from).cast_mut().cast(), (&raw const to).cast_mut().cast()];
            let block = (LANES as u32, 1, 1);
            result::launch_kernel(kernel, (1, 1, 1), block, 0, std::ptr::null_mut(), &mut params)?;
            result::memcpy_dtoh_sync(&mut outputs, to)?;
            result::free_sync(from)?;
            result::free_sync(to)?;
            result::module::unload(module)?;
        }
        Ok(outputs)
    }
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words_of(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}
