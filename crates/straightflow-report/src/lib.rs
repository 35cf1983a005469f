//! Run records to tables, SVG plots and one self-contained HTML page. No tensors in here.
