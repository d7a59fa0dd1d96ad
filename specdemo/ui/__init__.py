"""The page: Gradio carries control, one server-sent stream a page carries the text, the browser's script draws."""
