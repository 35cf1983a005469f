//! Lines and bands in pixels: broken where there is no value, cut at the frame, without what nobody sees.

use super::frame::Frame;

/// The outline of the band around a line.
pub fn band(frame: &Frame, points: &[(f64, f64)], band: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let ends = points.iter().zip(band);
    let side = |high: bool| {
        let end = |((x, _), band): (&(f64, f64), &(f64, f64))| {
            let (x, y) = frame.at((*x, if high { band.1 } else { band.0 }))?;
            Some((x, y.max(frame.top)))
        };
        thin(ends.clone().filter_map(end).collect())
    };
    let mut outline = side(true);
    outline.extend(side(false).into_iter().rev());
    outline
}

/// The line, broken where a point has no place, and cut off at the upper side of the frame.
pub fn pieces(frame: &Frame, points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let places: Vec<_> = points.iter().map(|point| frame.at(*point)).collect();
    let places = below(&places, frame.top);
    let pieces = places.split(Option::is_none);
    pieces
        .map(|piece| thin(piece.iter().copied().flatten().collect()))
        .filter(|piece| !piece.is_empty())
        .collect()
}

type Place = Option<(f64, f64)>;

/// What is below a height; lines that cross it end there.
fn below(places: &[Place], top: f64) -> Vec<Place> {
    let is_inside = |place: &(f64, f64)| place.1 >= top;
    let mut kept = Vec::with_capacity(places.len());
    let mut before: Place = None;
    for place in places {
        if let (Some(one), Some(other)) = (before, *place)
            && is_inside(&one) != is_inside(&other)
        {
            let share = (top - one.1) / (other.1 - one.1);
            kept.push(Some((one.0 + share * (other.0 - one.0), top)));
        }
        kept.push(place.filter(is_inside));
        before = *place;
    }
    kept
}

/// Leaves out what nobody can see: of many points in one column of pixels the first, the lowest, the
/// highest and the last are kept.
fn thin(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    for column in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        if column.len() <= 4 {
            kept.extend_from_slice(column);
            continue;
        }
        let by_height = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
        let lowest = (0..column.len()).min_by(by_height);
        let highest = (0..column.len()).max_by(by_height);
        let mut indices = vec![0, column.len() - 1];
        indices.extend(lowest);
        indices.extend(highest);
        indices.sort_unstable();
        indices.dedup();
        kept.extend(indices.into_iter().map(|index| column[index]));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_extremes_of_a_column() {
        let points: Vec<(f64, f64)> = (0..1000)
            .map(|i| {
                (
                    f64::from(i) / 100.0,
                    if i == 345 { 9.0 } else { f64::from(i % 7) },
                )
            })
            .collect();
        let kept = thin(points.clone());
        assert!(kept.len() <= 40);
        assert!(kept.contains(&(3.45, 9.0)));
        assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn a_line_ends_where_it_leaves_the_frame() {
        let places = [Some((0.0, 0.0)), Some((2.0, 20.0)), Some((3.0, 30.0))];
        let expected = [
            None,
            Some((1.0, 10.0)),
            Some((2.0, 20.0)),
            Some((3.0, 30.0)),
        ];
        assert_eq!(below(&places, 10.0), expected);
    }
}
