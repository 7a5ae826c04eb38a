/* Licences of the libraries in this file: NOTICE.txt */
import{n as a,o as b,p as c,q as d}from"./chunk-QPRZD3TC.js";import"./chunk-5HAC3AHZ.js";import"./chunk-R663BL4I.js";import"./chunk-G2TCPSGF.js";import"./chunk-OOJM4CTU.js";export{c as Measure,b as NoResults,d as default,a as outcome};
