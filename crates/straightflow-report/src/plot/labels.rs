//! Room for text: how wide it is, where it breaks, how labels avoid each other.

/// The width of a text in pixels, estimated from the kinds of its characters, because the font is
/// that of the reader.
pub fn width(text: &str, size: f64) -> f64 {
    // Those of DejaVu Sans, the widest of the usual fonts.
    let em = |c: char| match c {
        'i' | 'j' | 'l' | ' ' | '.' | ',' | ':' | ';' | '|' | '\'' => 0.32,
        't' | 'f' | 'r' | '-' | '(' | ')' | '/' => 0.41,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '=' => 0.9,
        c if c.is_uppercase() => 0.69,
        _ => 0.62,
    };
    size * text.chars().map(em).sum::<f64>()
}

/// Breaks a text at spaces into lines of at most `limit` pixels; a longer word has a line of its own.
pub fn wrap(text: &str, size: f64, limit: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= limit => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Moves intervals, given by wished-for middles and heights, apart so that none overlap, as near to
/// their wishes as the order allows, inside of `low..high` if they fit. Returns the new middles.
pub fn spread(wishes: &[(f64, f64)], low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    order.sort_by(|a, b| wishes[*a].0.total_cmp(&wishes[*b].0));
    // Blocks of touching intervals: each lies where the mean of its members' wishes is, and blocks
    // that overlap become one (the pool-adjacent-violators algorithm).
    struct Block {
        start: f64,
        height: f64,
        members: usize,
    }
    let clamp = |start: f64, height: f64| start.min(high - height).max(low);
    let mut blocks: Vec<Block> = Vec::new();
    for index in &order {
        let (wish, height) = wishes[*index];
        let start = clamp(wish - height / 2.0, height);
        blocks.push(Block {
            start,
            height,
            members: 1,
        });
        while let [.., before, last] = &blocks[..] {
            if before.start + before.height <= last.start {
                break;
            }
            let members = (before.members + last.members) as f64;
            let wish = (before.start * before.members as f64
                + (last.start - before.height) * last.members as f64)
                / members;
            let height = before.height + last.height;
            let merged = Block {
                start: clamp(wish, height),
                height,
                members: before.members + last.members,
            };
            blocks.truncate(blocks.len() - 2);
            blocks.push(merged);
        }
    }
    let mut middles = vec![0.0; wishes.len()];
    let mut members = order.iter();
    for block in blocks {
        let mut at = block.start;
        for index in members.by_ref().take(block.members) {
            let height = wishes[*index].1;
            middles[*index] = at + height / 2.0;
            at += height;
        }
    }
    middles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_with_room_stay_where_they_are() {
        assert_eq!(
            spread(&[(50.0, 10.0), (20.0, 10.0)], 0.0, 100.0),
            [50.0, 20.0]
        );
    }

    #[test]
    fn labels_at_one_place_surround_it() {
        let middles = spread(&[(50.0, 10.0), (50.0, 10.0), (50.0, 10.0)], 0.0, 100.0);
        assert_eq!(middles, [40.0, 50.0, 60.0]);
    }

    #[test]
    fn labels_stay_inside_in_order_and_apart() {
        let wishes: Vec<(f64, f64)> = (0..8).map(|i| (95.0 + 0.1 * f64::from(i), 12.0)).collect();
        let middles = spread(&wishes, 0.0, 100.0);
        for pair in middles.windows(2) {
            assert!(pair[1] - pair[0] >= 12.0 - 1e-9);
        }
        assert!(middles[0] >= 6.0 && middles[7] <= 94.0 + 1e-9);
    }

    #[test]
    fn text_breaks_at_spaces() {
        let lines = wrap("straight-through with matched gain", 12.0, 125.0);
        assert_eq!(lines, ["straight-through", "with matched gain"]);
        assert!(wrap("  ", 12.0, 100.0).is_empty());
    }
}
