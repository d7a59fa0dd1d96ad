# The whole demo on NVIDIA GPUs: vLLM's official image, with specdemo in an environment of its own beside it.
#   docker build -t specdemo .
#   docker run --gpus all --ipc=host -p 127.0.0.1:7860:7860 -v specdemo:/data specdemo
# --ipc=host gives vLLM's processes the shared memory they need; the volume keeps models, compiled kernels and stored runs.
FROM vllm/vllm-openai:v0.33.0

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

# gguf and accelerate convert the embedded model; vLLM itself is the image's own.
COPY requirements/engine-gpu.txt /tmp/requirements/
RUN engine_python="$(command -v python3)" \
 && grep -v '^vllm==' /tmp/requirements/engine-gpu.txt > /tmp/requirements/engine.txt \
 && if command -v uv >/dev/null; then uv pip install --system -r /tmp/requirements/engine.txt; \
    else "$engine_python" -m pip install -r /tmp/requirements/engine.txt; fi \
 && "$engine_python" -m pip --version >/dev/null \
 && rm -r /tmp/requirements

# The application's own environment: vLLM and Gradio ask for different versions of pillow.
COPY requirements/constraints.txt /opt/specdemo/requirements/
COPY pyproject.toml README.md LICENSE app.py /opt/specdemo/
COPY specdemo /opt/specdemo/specdemo
COPY assets /opt/specdemo/assets
RUN python3 -m venv /opt/specdemo/.venv \
 && /opt/specdemo/.venv/bin/pip install -c /opt/specdemo/requirements/constraints.txt -e /opt/specdemo

RUN groupadd --gid 10001 specdemo \
 && useradd --uid 10001 --gid specdemo --create-home specdemo \
 && install -d -o specdemo -g specdemo /data
USER 10001:10001
WORKDIR /opt/specdemo

# Everything that is kept lives in the volume. The page listens on all addresses of the container, and for that reason
# takes everybody for a stranger: controls hidden, limits on (docs/hosting.md).
ENV SPECDEMO_ENGINE__PYTHON=/usr/bin/python3 \
    SPECDEMO_SERVER__HOST=0.0.0.0 \
    SPECDEMO_SERVER__PORT=7860 \
    SPECDEMO_PUBLIC=1 \
    SPECDEMO_SERVER__DRAIN_S=20 \
    SPECDEMO_CACHE_DIR=/data/cache \
    SPECDEMO_DATA_DIR=/data/state \
    HF_HOME=/data/huggingface \
    VLLM_CACHE_ROOT=/data/vllm \
    DO_NOT_TRACK=1
VOLUME /data
EXPOSE 7860
STOPSIGNAL SIGTERM

HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["/opt/specdemo/.venv/bin/python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:7860/healthz', timeout=4)"]

# The image starts vLLM by itself otherwise.
ENTRYPOINT ["/opt/specdemo/.venv/bin/specdemo"]
CMD ["serve"]
