//! Detection: where the lines of a page are.
//!
//! The model gives, for each pixel, how likely it belongs to a line of text, shrunk towards the line's middle. Connected pixels
//! above a threshold become an upright box, grown again as PP-OCR's own code grows its polygons.

use tilewright_session::{HostTensor, Session};

use crate::Result;
use crate::picture::{Area, Picture};

/// The least extent of the shorter side of the picture that the model sees.
const SIDE: usize = 736;

/// Both extents must be multiples of this.
const STEP: usize = 32;

const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const DEVIATION: [f32; 3] = [0.229, 0.224, 0.225];

/// A pixel above this belongs to a line.
const PIXEL: f32 = 0.3;

/// A box with less than this on average is none.
const BOX: f32 = 0.5;

/// How far a box grows: this share of its area, divided by its circumference.
const GROWTH: f32 = 1.6;

/// The model's input for a picture.
pub(crate) fn input(picture: &Picture) -> Result<HostTensor> {
    let scale = (SIDE as f32 / picture.width.min(picture.height) as f32).max(1.0);
    let extent = |size: usize| ((size as f32 * scale / STEP as f32).round() as usize).max(1) * STEP;
    let (width, height) = (extent(picture.width), extent(picture.height));
    let mut planes = picture.planes(width, height);
    for (channel, plane) in planes.chunks_exact_mut(width * height).enumerate() {
        plane.iter_mut().for_each(|x| *x = (*x / 255.0 - MEAN[channel]) / DEVIATION[channel]);
    }
    Ok(HostTensor::new(&[1, 3, height, width], planes)?)
}

/// The boxes around the lines of a picture, from top to bottom and left to right.
pub(crate) fn find(session: &mut Session, picture: &Picture) -> Result<Vec<Area>> {
    let input = input(picture)?;
    let (height, width) = (input.shape()[2], input.shape()[3]);
    let outputs = session.run(&[("x", &input)])?;
    let map = outputs[0].expect::<f32>()?;
    let mut areas: Vec<Area> = connected(map, width, height)
        .into_iter()
        .filter_map(|area| grown(area, map, width, height))
        .map(|area| Area {
            left: area.left * picture.width / width,
            top: area.top * picture.height / height,
            right: (area.right * picture.width).div_ceil(width).min(picture.width),
            bottom: (area.bottom * picture.height).div_ceil(height).min(picture.height),
        })
        .collect();
    areas.sort_by_key(|area| (area.top + area.bottom, area.left));
    sort_rows(&mut areas);
    Ok(areas)
}

/// Boxes whose middles are in each other belong to one row, which is read from left to right.
fn sort_rows(areas: &mut [Area]) {
    for last in 1..areas.len() {
        for place in (1..=last).rev() {
            let (above, below) = (areas[place - 1], areas[place]);
            let same_row = (below.top + below.bottom) / 2 < above.bottom;
            if same_row && below.left < above.left {
                areas.swap(place - 1, place);
            }
        }
    }
}

/// The boxes around connected pixels above the threshold.
fn connected(map: &[f32], width: usize, height: usize) -> Vec<Area> {
    let mut seen = vec![false; map.len()];
    let mut areas = Vec::new();
    for start in 0..map.len() {
        if seen[start] || map[start] <= PIXEL {
            continue;
        }
        seen[start] = true;
        let mut open = vec![start];
        let mut area = Area { left: width, top: height, right: 0, bottom: 0 };
        while let Some(pixel) = open.pop() {
            let (x, y) = (pixel % width, pixel / width);
            area.left = area.left.min(x);
            area.right = area.right.max(x + 1);
            area.top = area.top.min(y);
            area.bottom = area.bottom.max(y + 1);
            for y in y.saturating_sub(1)..(y + 2).min(height) {
                for x in x.saturating_sub(1)..(x + 2).min(width) {
                    let next = y * width + x;
                    if !seen[next] && map[next] > PIXEL {
                        seen[next] = true;
                        open.push(next);
                    }
                }
            }
        }
        areas.push(area);
    }
    areas
}

/// The box of a whole line; `None` for one that is too small or too uncertain.
fn grown(area: Area, map: &[f32], width: usize, height: usize) -> Option<Area> {
    let (across, down) = (area.right - area.left, area.bottom - area.top);
    if across.min(down) < 3 {
        return None;
    }
    let rows = (area.top..area.bottom).map(|y| &map[y * width + area.left..y * width + area.right]);
    let inside: Vec<f32> = rows.flatten().copied().filter(|&x| x > PIXEL).collect();
    if inside.iter().sum::<f32>() / (inside.len() as f32) < BOX {
        return None;
    }
    let by = (GROWTH * (across * down) as f32 / (2 * (across + down)) as f32) as usize;
    Some(Area {
        left: area.left.saturating_sub(by),
        top: area.top.saturating_sub(by),
        right: (area.right + by).min(width),
        bottom: (area.bottom + by).min(height),
    })
}
