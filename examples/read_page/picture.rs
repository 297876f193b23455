//! Pictures: PNG files, other sizes, boxes.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use crate::Result;

/// A picture with red, green and blue from 0 to 255.
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Three numbers for each pixel, row by row.
    pixels: Vec<u8>,
}

/// A part of a picture: from left and top on, to right and bottom, which do not belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) left: usize,
    pub(crate) top: usize,
    pub(crate) right: usize,
    pub(crate) bottom: usize,
}

impl Picture {
    /// Reads a PNG file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut decoder = png::Decoder::new(BufReader::new(file));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info()?;
        let mut buffer = vec![0; reader.output_buffer_size().ok_or("the picture is too large")?];
        let info = reader.next_frame(&mut buffer)?;
        let samples = info.color_type.samples();
        let rgb = |pixel: &[u8]| match samples {
            1 | 2 => [pixel[0]; 3],
            _ => [pixel[0], pixel[1], pixel[2]],
        };
        let pixels = buffer[..info.buffer_size()].chunks_exact(samples).flat_map(rgb).collect();
        Ok(Picture { width: info.width as usize, height: info.height as usize, pixels })
    }

    /// Writes a PNG file.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut encoder = png::Encoder::new(BufWriter::new(file), self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header()?.write_image_data(&self.pixels)?;
        Ok(())
    }

    fn at(&self, x: usize, y: usize, channel: usize) -> f32 {
        f32::from(self.pixels[(y * self.width + x) * 3 + channel])
    }

    /// The picture in another size, as planes of blue, green and red: each number between the four that are nearest.
    pub(crate) fn planes(&self, width: usize, height: usize) -> Vec<f32> {
        let place = |index: usize, from: usize, to: usize| {
            let at = (index as f32 + 0.5) * from as f32 / to as f32 - 0.5;
            let at = at.clamp(0.0, (from - 1) as f32);
            let first = (at as usize).min(from - 1);
            (first, (first + 1).min(from - 1), at - first as f32)
        };
        let columns: Vec<_> = (0..width).map(|x| place(x, self.width, width)).collect();
        let rows: Vec<_> = (0..height).map(|y| place(y, self.height, height)).collect();
        let mut planes = Vec::with_capacity(3 * width * height);
        for channel in [2, 1, 0] {
            for &(top, bottom, down) in &rows {
                for &(left, right, across) in &columns {
                    let row =
                        |y| self.at(left, y, channel) * (1.0 - across) + self.at(right, y, channel) * across;
                    planes.push(row(top) * (1.0 - down) + row(bottom) * down);
                }
            }
        }
        planes
    }

    /// A part of the picture.
    pub(crate) fn crop(&self, area: Area) -> Picture {
        let rows = (area.top..area.bottom).map(|y| {
            let start = y * self.width * 3;
            &self.pixels[start + area.left * 3..start + area.right * 3]
        });
        let pixels = rows.flatten().copied().collect();
        Picture { width: area.right - area.left, height: area.bottom - area.top, pixels }
    }

    /// Draws the border of a part in red.
    pub(crate) fn draw(&mut self, area: Area) {
        for y in area.top..area.bottom {
            for x in area.left..area.right {
                let inside = y > area.top && y + 1 < area.bottom && x > area.left && x + 1 < area.right;
                if !inside {
                    let start = (y * self.width + x) * 3;
                    self.pixels[start..start + 3].copy_from_slice(&[220, 30, 30]);
                }
            }
        }
    }
}
