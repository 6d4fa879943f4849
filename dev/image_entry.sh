#!/usr/bin/env bash
# Entry point of the sink's image. It runs `spark-sink` with its arguments. On Kubernetes, Spark starts the same image with
# `driver` or `executor`, and passes everything else in the environment (Spark's "Running on Kubernetes").
set -euo pipefail

case ${1:-} in
executor)
    options=()
    for name in "${!SPARK_JAVA_OPT_@}"; do
        options+=("${!name}")
    done
    jars=$(python3 -c 'import pyspark; print(pyspark.__path__[0])')/jars
    exec java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "${SPARK_CONF_DIR:+$SPARK_CONF_DIR:}$jars/*${SPARK_CLASSPATH:+:$SPARK_CLASSPATH}" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" \
        --executor-id "$SPARK_EXECUTOR_ID" \
        --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" \
        --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
        --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
driver)
    shift
    exec spark-submit --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" --deploy-mode client "$@"
    ;;
*)
    exec spark-sink "$@"
    ;;
esac
