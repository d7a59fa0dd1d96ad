"""The Gradio theme: quiet greys, one accent a side, bundled fonts only. Colours of our own live in ``tokens.css``."""

from __future__ import annotations

import gradio as gr
from gradio.themes.utils import fonts

_CJK = ("PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC")
WEIGHTS = (400, 700)
"""Gradio's default, 600, comes as a file with a handful of letters: the others would be another font's."""


def theme() -> gr.themes.Base:
    """Light and dark in one; every font comes with Gradio or with the visitor's system, none from the network."""
    return gr.themes.Base(
        primary_hue=gr.themes.colors.slate,
        secondary_hue=gr.themes.colors.slate,
        neutral_hue=gr.themes.colors.slate,
        radius_size=gr.themes.sizes.radius_md,
        font=(fonts.LocalFont("IBM Plex Sans", WEIGHTS), *_CJK, "system-ui", "sans-serif"),
        font_mono=(fonts.LocalFont("IBM Plex Mono", WEIGHTS), "ui-monospace", "Consolas", "monospace"),
    ).set(
        body_background_fill="*neutral_50",
        body_background_fill_dark="*neutral_950",
        body_text_color_subdued="*neutral_500",
        body_text_color_subdued_dark="*neutral_400",
        block_info_text_color="*neutral_500",
        block_info_text_color_dark="*neutral_400",
        block_background_fill="white",
        block_background_fill_dark="*neutral_900",
        block_border_width="1px",
        block_shadow="none",
        block_label_background_fill="transparent",
        block_label_background_fill_dark="transparent",
        block_label_border_width="0px",
        block_title_text_weight="600",
        # The two side colours belong to the sides alone; everything else is neutral.
        button_primary_background_fill="*neutral_800",
        button_primary_background_fill_hover="*neutral_700",
        button_primary_background_fill_dark="*neutral_100",
        button_primary_background_fill_hover_dark="white",
        button_primary_text_color="white",
        button_primary_text_color_dark="*neutral_900",
        color_accent="*neutral_700",
        slider_color="*neutral_600",
        slider_color_dark="*neutral_400",
        checkbox_background_color_selected="*neutral_700",
        checkbox_background_color_selected_dark="*neutral_300",
        checkbox_border_color_selected="*neutral_700",
        checkbox_border_color_selected_dark="*neutral_300",
        button_large_text_weight="600",
    )
