# On a CPU:  docker build -t attention-atlas .  &&  docker run -p 7860:7860 attention-atlas
# On a GPU:  docker build -t attention-atlas --build-arg BASE=nvidia/cuda:12.8.1-base-ubuntu24.04 --build-arg WHEELS= .
#            docker run --gpus all -p 7860:7860 attention-atlas
ARG BASE=python:3.12-slim
FROM ${BASE}

# A base of NVIDIA's brings no Python; that of Python's does. Which versions there are, the base decides.
# hadolint ignore=DL3008
RUN if ! python3 -m venv --help > /dev/null 2>&1; then \
        apt-get update && apt-get install -y --no-install-recommends python3 python3-venv && rm -rf /var/lib/apt/lists/*; \
    fi

# torch for CPUs alone is 0.2 GB; with --build-arg WHEELS= the index's own, with CUDA, 3 GB.
ARG WHEELS=https://download.pytorch.org/whl/cpu
WORKDIR /app
COPY . .
RUN python3 -m venv /opt/atlas && \
    /opt/atlas/bin/pip install --no-cache-dir ${WHEELS:+--extra-index-url ${WHEELS}} -c constraints.txt ".[app,plots]"

# By number: Kubernetes' runAsNonRoot knows no names.
RUN useradd --uid 10001 --create-home atlas
USER 10001
WORKDIR /home/atlas
ENV PATH=/opt/atlas/bin:$PATH GRADIO_SERVER_NAME=0.0.0.0 GRADIO_SERVER_PORT=7860
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s CMD ["python3", "-c", \
    "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['GRADIO_SERVER_PORT'] + '/healthz', timeout=4)"]
CMD ["attention-atlas", "serve"]
