# A project's image, where it has no .aimi/Dockerfile.sandbox. aido puts the lock files it finds in place of the words
# in capitals, and leaves these commands out where there are none. The settings come last: they change most often.
FROM aimi-sandbox:base
USER root
RUN ["/opt/aimi/install-tools", TOOLS]
USER 1000:1000
COPY --chown=1000:1000 source/ /workspace/
RUN ["/opt/aimi/install-dependencies", LOCK_FILES]
COPY --chown=1000:1000 settings/ /workspace/
