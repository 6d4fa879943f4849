# Two images from one file:
#
#   docker build --target translator -t cdc-translator:0.1.0 .
#   docker build --target spark-sink -t cdc-spark-sink:0.1.0 .
#
# Packages come from requirements.lock, by hash. Jars are verified against dev/jars.sha256, and the crates of the
# translator's native path, the only compiled part, against dev/crates.sha256.
# Both images run as user 10001 and only write to /tmp, so the root file system can be read-only. They are for amd64 and
# arm64 (docker build --platform linux/arm64). Faust has no wheel for arm64 and is compiled there.

# A Debian 12 image (for Java 17) with Python 3.11 or newer. Use a digest for reproducible builds:
#   --build-arg PYTHON_IMAGE=python:3.12-slim-bookworm@sha256:...
ARG PYTHON_IMAGE=python:3.12-slim-bookworm
# The timestamp for all files, so that two builds of the same source can be identical (docs/releasing.md).
ARG SOURCE_DATE_EPOCH=1767225600


# -- the base of both images

FROM ${PYTHON_IMAGE} AS base
ARG SOURCE_DATE_EPOCH
# Hadoop needs the name of its user, so the user is in /etc/passwd.
RUN groupadd --gid 10001 cdc \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin cdc
# Bytecode is written when packages are installed, because it cannot be written at run time.
ENV PATH=/opt/cdc/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1


# -- wheels, all verified; this stage is not part of the images

FROM ${PYTHON_IMAGE} AS wheels
# Python then checks bytecode against its source by content. Layers round timestamps, so half of them would not match.
ARG SOURCE_DATE_EPOCH
ENV SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH}
WORKDIR /build
COPY pyproject.toml requirements.lock dev/lock_part.py ./
# Each image installs its part of the lock, as whole entries. `pip check` below fails the build if a package is missing.
RUN python3 lock_part.py setuptools wheel cython setuptools-scm > tools.txt \
 && python3 lock_part.py dependencies > translator.txt \
 && python3 lock_part.py dependencies sink > spark-sink.txt

# Packages without a wheel for this platform are compiled.
RUN if [ "$(uname -m)" != x86_64 ]; then \
        echo "--no-binary faust-streaming" > compiled.txt \
     && apt-get update \
     && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends gcc libc6-dev zlib1g-dev \
     && rm -rf /var/lib/apt/lists/*; \
    else touch compiled.txt; fi

# The build tools also come from the lock. Without --no-build-isolation, pip would download its own, unverified.
RUN python3 -m venv /build/venv \
 && /build/venv/bin/pip install --no-cache-dir --require-hashes --no-deps -r tools.txt \
 && /build/venv/bin/pip wheel --no-cache-dir --require-hashes --no-deps --no-build-isolation \
        --only-binary :all: $(cat compiled.txt) --wheel-dir /build/wheels -r translator.txt

COPY LICENSE README.md ./
COPY cdc_core cdc_core
COPY translator translator
COPY spark_sink spark_sink
RUN /build/venv/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /build/own .


# -- the native path of the translator; the compiler is not part of the image

FROM ${PYTHON_IMAGE} AS native
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends cargo-web rustc-web gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY translator/_native translator/_native
COPY dev/__init__.py dev/java.py dev/jars.py dev/native.py dev/crates.sha256 dev/
RUN CDC_CACHE=/build/cache python3 -m dev.native --must


# -- translator

FROM wheels AS translator-packages
RUN python3 -m venv --without-pip /opt/cdc \
 && /build/venv/bin/pip --python /opt/cdc/bin/python install --no-index --no-deps /build/wheels/*.whl /build/own/*.whl \
 && /build/venv/bin/pip --python /opt/cdc/bin/python check
COPY --from=native /build/translator/_native/rows.abi3.so /build/translator/_native/LICENSES.txt /build/
RUN cp rows.abi3.so LICENSES.txt /opt/cdc/lib/python3*/site-packages/translator/_native/ \
 && /opt/cdc/bin/translator --version | grep --quiet native

FROM base AS translator
LABEL org.opencontainers.image.title="CDC Translator" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=translator-packages /opt/cdc /opt/cdc
USER 10001:10001
EXPOSE 8080
ENTRYPOINT ["translator"]
CMD ["--help"]


# -- spark-sink

FROM base AS java
# The slim base has no folder for manual pages, but Java's package creates a link there and would fail.
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
 && rm -rf /var/lib/apt/lists/*

FROM wheels AS spark-sink-packages
# PySpark is only published as source. Its build packs the jars that it contains.
RUN /build/venv/bin/pip wheel --no-cache-dir --require-hashes --no-deps --no-build-isolation \
        --only-binary :all: --no-binary pyspark --wheel-dir /build/spark-wheels -r spark-sink.txt
RUN python3 -m venv --without-pip /opt/cdc \
 && /build/venv/bin/pip --python /opt/cdc/bin/python install --no-index --no-deps \
        /build/spark-wheels/*.whl /build/own/*.whl \
 && /build/venv/bin/pip --python /opt/cdc/bin/python check

# dev.jars downloads with PySpark's Ivy, and fails if a jar differs from dev/jars.sha256. dev.sink_jar compiles the sink's
# own jar with a compiler that is not part of the image. Next to PySpark's own jars, they are on the class path of every
# Spark process without any setting.
FROM java AS spark-sink-jars
WORKDIR /build
COPY --from=spark-sink-packages /opt/cdc /opt/cdc
COPY dev/__init__.py dev/java.py dev/jars.py dev/sink_jar.py dev/jars.xml dev/jars.sha256 dev/
COPY spark_sink/_java spark_sink/_java
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends openjdk-17-jdk-headless \
 && CDC_CACHE=/build/cache python -m dev.jars \
 && CDC_CACHE=/build/cache python -m dev.sink_jar --must \
 && mv cache/cdc-translator/jars-*/spark/*.jar cache/cdc-translator/jars-*/s3/*.jar \
        cache/cdc-translator/cdc-sink-*.jar /opt/cdc/lib/python3*/site-packages/pyspark/jars/

# The Spark operator needs a file path, but the folder of packages has the Python version in its name.
RUN cp /opt/cdc/lib/python3*/site-packages/spark_sink/__main__.py /opt/cdc/spark_sink_main.py
COPY dev/image_entry.sh /opt/cdc/bin/image_entry

FROM java AS spark-sink
LABEL org.opencontainers.image.title="CDC Translator: Spark sink" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=spark-sink-jars /opt/cdc /opt/cdc
USER 10001:10001
# Spark writes small files into its working directory.
WORKDIR /tmp
ENTRYPOINT ["image_entry"]
CMD ["--help"]
